"""The store of cached work: stages and their keys, artifacts, leases. No torch.

Operations on a whole store have modules of their own: :mod:`harness.store.maintenance` (its contents, checking, making
room) and :mod:`harness.store.exchange` (copies to and from other stores).
"""

from harness.store.artifact import Artifact, Draft, Meta, MissingArtifact, reading
from harness.store.folders import cache_root, data_folder, data_root, index_root, store_root
from harness.store.keys import FileMark, canonical, difference, digest, file_digest, file_mark, hash_file
from harness.store.leases import Lease, claim_run, new_run_name, sweep, try_lock
from harness.store.stage import PROTOCOL_VERSION, STAGE_KINDS, Failure, Stage, moment, references, span, tier_key
from harness.store.store import COSTS, Scratch, Store
