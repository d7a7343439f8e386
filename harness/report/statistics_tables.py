"""The statistics as tables, with sentences that name the test, its unit, n and the correction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from harness.errors import listed
from harness.report.statistics import Family, Statistics
from harness.report.table import NOTHING, SIGNIFICANT, Text, TextTable, interval_text, one_line, points
from harness.results.aggregate import ResultTable
from harness.results.statistics import ALPHA, EXACT, LEVEL, POWER, Ranking, TestResult, datasets_text


def statistics_tables(table: ResultTable, computed: Statistics) -> list[TextTable]:
    """Lay out all statistics, in reading order."""
    tables = [_intervals(table, computed)]
    if computed.reference is None:
        lacking = "No differences, tests or detectable effects: the suite names no reference row"
        tables.append(TextTable("Differences", caption=(f"{lacking} (report: {{reference: METHOD}}).",)))
    else:
        tables += [_differences(table, computed), _effects(table, computed)]
    for family in computed.families:
        suffix = f" ({family.label})" if len(computed.families) > 1 else ""
        if len(family.datasets) < 2:
            sentence = f"One dataset with {family.label}: nothing can be said across datasets."
            tables.append(TextTable(f"Across datasets{suffix}", caption=(sentence,)))
            continue
        tables += [_comparisons(family, computed.reference, suffix)] if computed.reference else []
        tables += [_ranks(family, suffix)] if len(family.scores) > 1 else []
    return tables


def _by_cell(
    title: str, table: ResultTable, texts: Mapping[tuple[str, str, str], Text], caption: Sequence[str]
) -> TextTable:
    """Lay out one text for each cell of the main table."""
    rows = [
        (Text(one_line(method)), *(texts.get((method, c.dataset, c.split), NOTHING) for c in table.columns))
        for method in table.results.methods
        if any((method, c.dataset, c.split) in texts for c in table.columns)
    ]
    header = ("Method", *(one_line(column.label) for column in table.columns))
    return TextTable(title, header, tuple(rows), caption=tuple(caption))


def _intervals(table: ResultTable, computed: Statistics) -> TextTable:
    rows = [row for row in computed.rows if row.mean.n]
    seeds = len(table.results.seeds)
    texts = {row.place: Text(interval_text(row.mean, seeds=seeds)) for row in rows}
    sentences = [
        f"Mean over seeds in percent with its {LEVEL:.0%} t-interval (n - 1 degrees of freedom), "
        f"n={seeds} training seeds where nothing else is said.",
        "The intervals cover what changes with the training seed on this draw of the data, nothing else, and are not "
        "corrected for their number.",
    ]
    if any(row.mean.n == 2 and row.mean.low is not None for row in rows):
        sentences.append(
            "Two seeds leave one degree of freedom: such an interval is about 13 standard errors to each side, and may "
            "leave the metric's scale."
        )
    if seeds == 1:
        sentences = ["One training seed: no interval; at least 2 seeds are needed, and 3 or more to be of use."]
    return _by_cell("Confidence intervals", table, texts, sentences)


def _differences(table: ResultTable, computed: Statistics) -> TextTable:
    seeds = len(table.results.seeds)
    texts, count = {}, 0
    for row in computed.rows:
        if row.difference is not None and row.difference.n:
            flags = SIGNIFICANT if row.difference.excludes_zero else ""
            texts[row.place] = Text(interval_text(row.difference, seeds=seeds, signed=True), flags=flags)
            count += row.difference.low is not None
    sentences = [
        f"Difference to {computed.reference} in percentage points, paired by seed, with its "
        f"{LEVEL:.0%} t-interval; pairs are the seeds where both rows have a value.",
    ]
    if count:
        sentences.append(
            f"{SIGNIFICANT}: the interval excludes zero. Not corrected for multiple comparisons: of {count} "
            f"interval{'s' * (count > 1)} about {count * (1 - LEVEL):.1f} would exclude zero by chance alone."
        )
    return _by_cell(f"Differences to {computed.reference}", table, texts, sentences)


def _effects(table: ResultTable, computed: Statistics) -> TextTable:
    rows = [
        (
            Text(one_line(column.label)),
            Text(str(one.seeds)),
            *(NOTHING if value is None else Text(points(value)) for value in (one.deviation, one.effect, one.points)),
        )
        for column, one in zip(table.columns, computed.detectable, strict=True)
    ]
    header = ("Dataset", "Seeds", "SD of differences", "Detectable, in SDs", "Detectable, in points")
    sentence = (
        f"The smallest true difference to {computed.reference} that a two-sided paired t-test over the seeds at "
        f"{ALPHA:g} finds with probability {POWER:g} (noncentral t). SD: standard deviation of the differences paired "
        "by seed, pooled over the methods, in percentage points. Fewer than 2 pairs of seeds detect nothing."
    )
    return TextTable("Minimum detectable effect", header, tuple(rows), caption=(sentence,))


def _comparisons(family: Family, reference: str, suffix: str) -> TextTable:
    title = f"Tests against {reference} across datasets{suffix}"
    if not family.comparisons:
        why = family.left_out.get(reference, "no other row counts")
        return TextTable(title, caption=(f"No tests: {reference}: {why}.",))
    header = ["Method", "Datasets", "Mean difference", "Win/tie/loss"]
    tested_any = any(one.wilcoxon.p is not None for one in family.comparisons)
    header += ["Wilcoxon p", "Holm", "Permutation p", "Holm"] if tested_any else []
    rows = []
    for one in family.comparisons:
        effect, counts = one.wilcoxon.effect, (one.wins, one.ties, one.losses)
        row = [Text(one_line(one.method)), Text(str(sum(counts)))]
        row += [NOTHING if effect is None else Text(points(effect, signed=True)), Text("/".join(map(str, counts)))]
        row += [text for test in (one.wilcoxon, one.permutation) for text in _p_values(test)] if tested_any else []
        rows.append(tuple(row))
    return TextTable(title, tuple(header), tuple(rows), caption=tuple(_test_sentences(family, tested=tested_any)))


def _p_values(result: TestResult) -> tuple[Text, Text]:
    if result.p is None or result.adjusted is None:
        return NOTHING, NOTHING
    flags = SIGNIFICANT if result.adjusted <= ALPHA else ""
    return Text(_p_text(result.p)), Text(_p_text(result.adjusted), flags=flags)


def _p_text(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def _test_sentences(family: Family, *, tested: bool) -> list[str]:
    sentences = [
        "Unit: a dataset; it counts with the difference of the two means over seeds as printed, in percentage points."
    ]
    if tested:
        sentences += [
            "Two-sided Wilcoxon signed-rank test (ties share ranks, zero differences left out) and paired permutation "
            f"test of the mean difference, exact for up to {EXACT} datasets.",
            f"Holm: corrected over {len(family.comparisons)} methods, for each test by itself; {SIGNIFICANT}: at most "
            f"{ALPHA:g}.",
        ]
    reasons = dict.fromkeys(one.wilcoxon.reason for one in family.comparisons if one.wilcoxon.reason)
    sentences += [f"No p-value with {reason}." for reason in reasons]
    if family.left_out:
        methods = "; ".join(f"{one_line(method)} ({why})" for method, why in family.left_out.items())
        sentences.append(f"Left out: {methods}.")
    if family.gaps:
        gaps = "; ".join(f"{one_line(cell)} ({why})" for cell, why in family.gaps.items())
        sentences.append(f"Cells that do not count, so that pairs with them are missing: {gaps}.")
    return [*sentences, *related_sentences(family)]


def related_sentences(family: Family) -> list[str]:
    """Warn of datasets that are variants of one."""
    return [
        f"{count} of the {len(family.datasets)} datasets are variants of one ({name}) and count as independent here, "
        "which flatters the tests."
        for name, count in family.related.items()
    ]


def _ranks(family: Family, suffix: str) -> TextTable:
    ranking = family.ranking
    rows = tuple((Text(one_line(method)), Text(f"{rank:.2f}")) for method, rank in ranking.ranks.items())
    sentences = [
        f"Average rank of the means over seeds as printed, over {datasets_text(len(ranking.datasets))}; 1 is the "
        "highest mean, ties share their mean rank.",
        *rank_sentences(ranking),
        *related_sentences(family),
    ]
    if ranking.left_out:
        sentences.append(f"Not ranked, as they lack a value: {listed(map(one_line, ranking.left_out))}.")
    dropped = [d for i, d in enumerate(family.datasets) if i not in ranking.datasets]
    if dropped:
        sentences.append(f"Datasets left out because methods lack a value there: {listed(map(one_line, dropped))}.")
    return TextTable(f"Average ranks{suffix}", ("Method", "Average rank"), rows, caption=tuple(sentences))


def rank_sentences(ranking: Ranking) -> list[str]:
    """Say what Friedman's and Nemenyi's tests found, or why they cannot find anything."""
    if ranking.p is None or ranking.chi_square is None or ranking.critical is None:
        return [f"No Friedman test and no critical difference: {ranking.reason}."]
    k, n = len(ranking.ranks), len(ranking.datasets)
    p = _p_text(ranking.p)
    result = f"Friedman's test, {k} methods on {datasets_text(n)}: chi-square({k - 1}) = {ranking.chi_square:.2f}, "
    result += f"p < {p[1:]}." if p.startswith("<") else f"p = {p}."
    result += " The p-value is rough for fewer than 10 datasets or 6 methods." if n < 10 or k < 6 else ""
    if ranking.p > ALPHA:
        result += " It does not reject that all rank alike; do not read the order of the ranks."
    critical = f"Nemenyi's critical difference at {ALPHA:g}: {ranking.critical:.2f}"
    if ranking.critical > k - 1:
        enough = ceil(n * (ranking.critical / (k - 1)) ** 2)
        critical += f"; no two average ranks can differ by so much, at least {enough} datasets are needed."
    else:
        joined = "; ".join(listed(map(one_line, group)) for group in ranking.groups) or "none"
        critical += f"; groups of methods that do not differ by it: {joined}."
    return [result, critical]
