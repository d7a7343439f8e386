"""The statistics as tables with sentences that name the test, its unit, n and the correction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil

from harness.report.block import EMPTY, Block
from harness.report.caption import METRICS
from harness.report.layout import Grid, Text
from harness.report.statistics import Comparison, Family, RowStatistics, Statistics
from harness.report.table import Table
from harness.report.text import one_line
from harness.results.intervals import Interval
from harness.results.paired import EXACT, TestResult
from harness.results.ranks import Friedman, Ranking

SIGNIFICANT = "§"
NOTHING = Text("–")
SEVERAL = 8
"""A matrix of more methods has numbers for column headings."""


def blocks(table: Table, found: Statistics) -> list[Block]:
    """All tables of the statistics, in reading order."""
    made = [_intervals(table, found)]
    if found.reference is None:
        made.append(Block("Differences", EMPTY, (_NO_REFERENCE,)))
    else:
        made += [_differences(table, found), _detectable(found)]
    several = len(found.families) > 1
    for family in found.families:
        made += _across(family, found, f" ({_family_name(family)})" if several else "")
    return made


_NO_REFERENCE = (
    "No differences, tests or detectable effects: the suite names no reference row (report: {reference: METHOD})."
)


_TWO = (
    "Two seeds leave one degree of freedom: such an interval is about 13 standard errors to each side, and may leave "
    "the metric's scale."
)


def interval_text(interval: Interval, *, signed: bool = False) -> str:
    """``71.95 [68.45, 75.45]``, or the estimate with why there is no interval."""
    if interval.estimate is None:
        return "–"
    estimate = points(interval.estimate, signed=signed)
    if interval.low is None or interval.high is None:
        return f"{estimate} (n=1)" if interval.n == 1 else f"{estimate} (no spread, n={interval.n})"
    return f"{estimate} [{points(interval.low)}, {points(interval.high)}]"


def points(value: float, *, signed: bool = False) -> str:
    """A number with two decimals and a real minus sign."""
    return (f"{value:+.2f}" if signed else f"{value:.2f}").replace("-", "−")


def p_text(p: float | None) -> str:
    """A p-value as papers print it."""
    if p is None:
        return "–"
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def _p_told(p: float | None) -> str:
    text = p_text(p)
    return f"p {text[0]} {text[1:]}" if text.startswith("<") else f"p = {text}"


def percent_of(level: float) -> str:
    """``95%``."""
    return f"{100 * level:g}%"


def _by_cell(table: Table, texts: dict[tuple[str, str, str], Text]) -> Grid:
    rows = [
        (Text(one_line(method)), *(texts.get((method, c.dataset, c.split), NOTHING) for c in table.columns))
        for method in table.results.methods
        if any((method, c.dataset, c.split) in texts for c in table.columns)
    ]
    return Grid(("Method", *(one_line(column.label) for column in table.columns)), tuple(rows), ())


def _place(row: RowStatistics) -> tuple[str, str, str]:
    return row.row.method, row.row.dataset, row.row.split


def _intervals(table: Table, found: Statistics) -> Block:
    texts = {_place(row): Text(interval_text(row.mean) + _missing(row.mean, table)) for row in found.rows if row.mean.n}
    seeds = len(table.results.seeds)
    sentences = [
        f"Mean over seeds in percent with its {percent_of(found.level)} t-interval (n - 1 degrees of freedom), "
        f"n={seeds} training seeds where nothing else is said.",
        "The intervals cover what changes with the training seed on this draw of the data, nothing else, and are not "
        "corrected for their number.",
    ]
    if any(row.mean.n == 2 and row.mean.low is not None for row in found.rows):
        sentences.append(_TWO)
    if seeds == 1:
        sentences = ["One training seed: no interval; at least 2 seeds are needed, and 3 or more to be of use."]
    return Block("Confidence intervals", _by_cell(table, texts), tuple(sentences))


def _missing(interval: Interval, table: Table) -> str:
    """How many of the seeds are behind an interval, where some are missing."""
    total = len(table.results.seeds)
    return f" (n={interval.n}/{total})" if 1 < interval.n < total and interval.low is not None else ""


def _differences(table: Table, found: Statistics) -> Block:
    texts = {
        _place(row): Text(
            interval_text(row.difference, signed=True) + _missing(row.difference, table),
            flags=SIGNIFICANT if row.difference.excludes_zero else "",
        )
        for row in found.rows
        if row.difference is not None and row.difference.n
    }
    count = sum(row.difference is not None and row.difference.low is not None for row in found.rows)
    sentences = [
        f"Difference to {found.reference} in percentage points, paired by seed, with its {percent_of(found.level)} "
        "t-interval; pairs are the seeds where both rows have a value.",
        f"{SIGNIFICANT}: the interval excludes zero. Not corrected for multiple comparisons: of {count} intervals "
        f"about {count * (1 - found.level):.1f} would exclude zero by chance alone.",
    ]
    return Block(f"Differences to {found.reference}", _by_cell(table, texts), tuple(sentences))


def _detectable(found: Statistics) -> Block:
    rows = [
        (
            Text(one_line(one.column.label)),
            Text(str(one.seeds)),
            Text("–" if one.deviation is None else points(one.deviation)),
            Text("–" if one.effect is None else f"{one.effect:.2f}"),
            Text("–" if one.points is None else points(one.points)),
        )
        for one in found.detectable
    ]
    header = ("Dataset", "Seeds", "SD of differences", "Detectable, in SDs", "Detectable, in points")
    sentence = (
        f"The smallest true difference to {found.reference} that a two-sided paired t-test over the seeds at "
        f"{found.alpha:g} finds with probability {found.power:g} (noncentral t). SD: standard deviation of the "
        "differences paired by seed, pooled over the methods, in percentage points."
    )
    few = [one for one in found.detectable if one.effect is None]
    told = (sentence, "Fewer than 2 pairs of seeds detect nothing.") if few else (sentence,)
    return Block("Minimum detectable effect", Grid(header, tuple(rows), ()), told)


def _across(family: Family, found: Statistics, suffix: str) -> list[Block]:
    if len(family.datasets) < 2:
        told = f"One dataset with {_family_name(family)}: nothing can be said across datasets."
        return [Block(f"Across datasets{suffix}", EMPTY, (told,))]
    made = [_tests(family, found, suffix)] if found.reference else []
    if len(family.scores) > 1:
        made += [_ranks(family, suffix), _records(family, suffix)]
    return made


def _family_name(family: Family) -> str:
    metric, _, kind = family.label.partition(", ")
    return f"{METRICS.get(metric, metric)}, {'in-distribution' if kind == 'in distribution' else kind} splits"


def _tests(family: Family, found: Statistics, suffix: str) -> Block:
    title = f"Tests against {found.reference} across datasets{suffix}"
    if not family.comparisons:
        why = family.left_out.get(found.reference or "", "no other row counts")
        return Block(title, EMPTY, (f"No tests: {found.reference}: {why}.",))
    rows: list[tuple[Text, ...]] = [
        (
            Text(one_line(one.method)),
            Text(str(one.record.n)),
            NOTHING if one.wilcoxon.effect is None else Text(points(one.wilcoxon.effect, signed=True)),
            Text(f"{one.record.wins}/{one.record.ties}/{one.record.losses}"),
            *_p_values(one.wilcoxon, found),
            *_p_values(one.permutation, found),
        )
        for one in family.comparisons
    ]
    header: tuple[str, ...] = (
        "Method",
        "Datasets",
        "Mean difference",
        "Win/tie/loss",
        "Wilcoxon p",
        "Holm",
        "Permutation p",
        "Holm",
    )
    if not _any_p(family.comparisons):
        rows, header = [row[:4] for row in rows], header[:4]
    return Block(title, Grid(header, tuple(rows), ()), tuple(_test_sentences(family, found)))


def _p_values(result: TestResult, found: Statistics) -> tuple[Text, Text]:
    significant = result.adjusted is not None and result.adjusted <= found.alpha
    return Text(p_text(result.p)), Text(p_text(result.adjusted), flags=SIGNIFICANT if significant else "")


def _any_p(comparisons: Iterable[Comparison]) -> bool:
    return any(one.wilcoxon.p is not None or one.permutation.p is not None for one in comparisons)


def _test_sentences(family: Family, found: Statistics) -> list[str]:
    unit = (
        "Unit: a dataset; it counts with the difference of the two means over seeds as printed, in percentage points."
    )
    reasons = dict.fromkeys(one.wilcoxon.reason for one in family.comparisons if one.wilcoxon.reason)
    refused = [f"No p-value with {reason}." for reason in list(reasons)[:3]]
    sentences = [unit]
    if _any_p(family.comparisons):
        sentences = [
            "Two-sided Wilcoxon signed-rank test (ties share ranks, zero differences left out) and paired permutation "
            f"test of the mean difference, exact for up to {EXACT} datasets. {unit}",
            f"Holm: corrected over {len(family.comparisons)} methods, for each test by itself; {SIGNIFICANT}: at most "
            f"{found.alpha:g}.",
        ]
    return [*sentences, *refused, *_caveats(family)]


def _caveats(family: Family) -> list[str]:
    sentences = []
    if family.left_out:
        told = "; ".join(f"{one_line(method)} ({why})" for method, why in family.left_out.items())
        sentences.append(f"Left out: {told}.")
    if family.gaps:
        told = "; ".join(f"{one_line(method)} on {one_line(dataset)} ({why})" for method, dataset, why in family.gaps)
        sentences.append(f"Cells that do not count, so that pairs with them are missing: {told}.")
    for name, count in family.related.items():
        sentences.append(
            f"{count} of the {len(family.datasets)} datasets are variants of one ({name}) and count as independent "
            "here, which flatters the tests."
        )
    return sentences


def _ranks(family: Family, suffix: str) -> Block:
    found = family.ranking
    letters = _letters(found.groups)
    grouped = found.critical is not None and found.critical <= len(found.ranks) - 1
    rows = [
        (Text(one_line(m)), Text(f"{rank:.2f}"), *([Text(letters.get(m, "–"))] if grouped else []))
        for m, rank in found.ranks.items()
    ]
    header = ("Method", "Average rank", *(["Group"] if grouped else []))
    better = "highest" if family.higher_is_better else "lowest"
    sentences = [
        f"Average rank of the means over seeds as printed, over {_count(len(found.datasets))}; 1 is the {better} mean, "
        "ties share their mean rank.",
        _friedman_text(found.friedman, found.alpha),
    ]
    if found.critical is not None:
        sentences.append(_critical_text(found, found.critical))
    sentences.append(_alternative(family))
    if found.left_out:
        sentences.append(f"Not ranked, as they lack a value: {', '.join(map(one_line, found.left_out))}.")
    dropped = [d for i, d in enumerate(family.datasets) if i not in found.datasets]
    if dropped:
        sentences.append(f"Datasets left out because methods lack a value there: {', '.join(map(one_line, dropped))}.")
    told = tuple(sentence for sentence in sentences if sentence)
    return Block(f"Average ranks{suffix}", Grid(header, tuple(rows), ()), told)


def _count(datasets: int) -> str:
    return "1 dataset" if datasets == 1 else f"{datasets} datasets"


def _friedman_text(test: Friedman, alpha: float) -> str:
    if test.p is None or test.chi_square is None:
        return f"No Friedman test and no critical difference: {test.reason}."
    k, n = test.methods, test.datasets
    told = f"Friedman's test, {k} methods on {n} datasets: "
    told += f"chi-square({k - 1}) = {test.chi_square:.2f}, {_p_told(test.p)}"
    if test.f is not None:
        told += f"; Iman and Davenport's F({k - 1}, {(k - 1) * (n - 1)}) = {test.f:.2f}, {_p_told(test.f_p)}"
    rough = " The p-values are rough for fewer than 10 datasets or 6 methods." if n < 10 or k < 6 else ""
    verdict = "" if test.p <= alpha else " It does not reject that all rank alike; do not read the order of the ranks."
    return f"{told}.{rough}{verdict}"


def _critical_text(found: Ranking, critical: float) -> str:
    told = f"Nemenyi's critical difference at {found.alpha:g}: {critical:.2f}"
    largest = len(found.ranks) - 1
    if critical <= largest:
        return f"{told}; methods with a letter in common do not differ by it."
    enough = ceil(len(found.datasets) * (critical / largest) ** 2)
    return f"{told}; no two average ranks can differ by so much, at least {enough} datasets are needed."


def _alternative(family: Family) -> str:
    found = family.ranking
    if found.wilcoxon_groups is None:
        return f"No groups by Wilcoxon tests: {found.wilcoxon_reason}." if found.wilcoxon_reason else ""
    groups = "; ".join(", ".join(map(one_line, group)) for group in found.wilcoxon_groups) or "none"
    return f"Groups that pairwise Wilcoxon tests with Holm's correction over all pairs do not tell apart: {groups}."


def _letters(groups: Sequence[Sequence[str]]) -> dict[str, str]:
    """Method -> the letters of its groups."""
    found: dict[str, str] = {}
    for number, group in enumerate(groups):
        for method in group:
            found[method] = found.get(method, "") + _letter(number)
    return found


def _letter(number: int) -> str:
    return chr(ord("a") + number) if number < 26 else f"({number + 1})"


def _records(family: Family, suffix: str) -> Block:
    methods = list(family.scores)
    numbered = len(methods) > SEVERAL
    header = ["Method", *(f"{i}" if numbered else one_line(m) for i, m in enumerate(methods, start=1))]
    rows = []
    for number, one in enumerate(methods, start=1):
        label = f"{number} {one_line(one)}" if numbered else one_line(one)
        cells = [NOTHING if one == other else Text(_record_text(family, one, other)) for other in methods]
        rows.append((Text(label), *cells))
    sentence = (
        "Row against column: datasets won/tied/lost, by the means over seeds as printed, where both have a value; "
        f"{_count(len(family.datasets))}."
    )
    return Block(f"Win/tie/loss{suffix}", Grid(tuple(header), tuple(rows), ()), (sentence,))


def _record_text(family: Family, one: str, other: str) -> str:
    record = family.records[one, other]
    return f"{record.wins}/{record.ties}/{record.losses}" if record.n else "–"
