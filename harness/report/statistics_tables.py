"""The statistics as tables, with sentences that name the test, its unit, n and the correction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from harness.report.statistics import Family, MethodTests, RowStatistics, Statistics
from harness.report.table import Text, TextTable
from harness.report.text import SIGNIFICANT, interval_text, one_line, percent_of, points
from harness.results.aggregate import ResultTable
from harness.results.paired import EXACT, TestResult
from harness.results.ranks import Friedman, Ranking
from harness.results.rows import METRICS

NOTHING = Text("–")
SEVERAL = 8
"""A matrix of more methods has numbers for column headings."""
_NO_REFERENCE = (
    "No differences, tests or detectable effects: the suite names no reference row (report: {reference: METHOD})."
)
_TWO_SEEDS = (
    "Two seeds leave one degree of freedom: such an interval is about 13 standard errors to each side, and may leave "
    "the metric's scale."
)


def statistics_tables(table: ResultTable, computed: Statistics) -> list[TextTable]:
    """Lay out all statistics, in reading order."""
    tables = [_intervals(table, computed)]
    if computed.reference is None:
        tables.append(TextTable("Differences", caption=(_NO_REFERENCE,)))
    else:
        tables += [_differences(table, computed), _detectable(table, computed)]
    for family in computed.families:
        suffix = f" ({_family_name(family)})" if len(computed.families) > 1 else ""
        tables += _across(family, computed, suffix)
    return tables


# Over seeds.


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


def _place(row: RowStatistics) -> tuple[str, str, str]:
    return row.method, row.dataset, row.split


def _intervals(table: ResultTable, computed: Statistics) -> TextTable:
    rows = [row for row in computed.rows if row.mean.n]
    seeds = len(table.results.seeds)
    texts = {_place(row): Text(interval_text(row.mean, seeds=seeds)) for row in rows}
    sentences = [
        f"Mean over seeds in percent with its {percent_of(computed.level)} t-interval (n - 1 degrees of freedom), "
        f"n={seeds} training seeds where nothing else is said.",
        "The intervals cover what changes with the training seed on this draw of the data, nothing else, and are not "
        "corrected for their number.",
    ]
    if any(row.mean.n == 2 and row.mean.low is not None for row in rows):
        sentences.append(_TWO_SEEDS)
    if seeds == 1:
        sentences = ["One training seed: no interval; at least 2 seeds are needed, and 3 or more to be of use."]
    return _by_cell("Confidence intervals", table, texts, sentences)


def _differences(table: ResultTable, computed: Statistics) -> TextTable:
    differences = {_place(row): row.difference for row in computed.rows if row.difference is not None}
    texts = {
        place: Text(
            interval_text(difference, seeds=len(table.results.seeds), signed=True),
            flags=SIGNIFICANT if difference.excludes_zero else "",
        )
        for place, difference in differences.items()
        if difference.n
    }
    count = sum(difference.low is not None for difference in differences.values())
    sentences = [
        f"Difference to {computed.reference} in percentage points, paired by seed, with its "
        f"{percent_of(computed.level)} t-interval; pairs are the seeds where both rows have a value.",
        f"{SIGNIFICANT}: the interval excludes zero. Not corrected for multiple comparisons: of {count} intervals "
        f"about {count * (1 - computed.level):.1f} would exclude zero by chance alone.",
    ]
    return _by_cell(f"Differences to {computed.reference}", table, texts, sentences)


def _detectable(table: ResultTable, computed: Statistics) -> TextTable:
    rows = [
        (
            Text(one_line(column.label)),
            Text(str(column_seeds.seeds)),
            _points(column_seeds.deviation),
            NOTHING if column_seeds.effect is None else Text(f"{column_seeds.effect:.2f}"),
            _points(column_seeds.points),
        )
        for column, column_seeds in zip(table.columns, computed.detectable, strict=True)
    ]
    header = ("Dataset", "Seeds", "SD of differences", "Detectable, in SDs", "Detectable, in points")
    sentences = [
        f"The smallest true difference to {computed.reference} that a two-sided paired t-test over the seeds at "
        f"{computed.alpha:g} finds with probability {computed.power:g} (noncentral t). SD: standard deviation of the "
        "differences paired by seed, pooled over the methods, in percentage points."
    ]
    if any(column_seeds.effect is None for column_seeds in computed.detectable):
        sentences.append("Fewer than 2 pairs of seeds detect nothing.")
    return TextTable("Minimum detectable effect", header, tuple(rows), caption=tuple(sentences))


def _points(value: float | None, *, signed: bool = False) -> Text:
    return NOTHING if value is None else Text(points(value, signed=signed))


# Across datasets.


def _across(family: Family, computed: Statistics, suffix: str) -> list[TextTable]:
    if len(family.datasets) < 2:
        sentence = f"One dataset with {_family_name(family)}: nothing can be said across datasets."
        return [TextTable(f"Across datasets{suffix}", caption=(sentence,))]
    tables = [_tests(family, computed, suffix)] if computed.reference else []
    if len(family.scores) > 1:
        tables += [_ranks(family, suffix), _records(family, suffix)]
    return tables


def _family_name(family: Family) -> str:
    metric, _, kind = family.label.partition(", ")
    return f"{METRICS.get(metric, metric)}, {'in-distribution' if kind == 'in distribution' else kind} splits"


def _tests(family: Family, computed: Statistics, suffix: str) -> TextTable:
    title = f"Tests against {computed.reference} across datasets{suffix}"
    if not family.comparisons:
        why = family.left_out.get(computed.reference or "", "no other row counts")
        return TextTable(title, caption=(f"No tests: {computed.reference}: {why}.",))
    header = ["Method", "Datasets", "Mean difference", "Win/tie/loss"]
    rows: list[tuple[Text, ...]] = [
        (
            Text(one_line(tests.method)),
            Text(str(tests.record.n)),
            _points(tests.wilcoxon.effect, signed=True),
            Text(f"{tests.record.wins}/{tests.record.ties}/{tests.record.losses}"),
        )
        for tests in family.comparisons
    ]
    if _any_p(family.comparisons):
        header += ["Wilcoxon p", "Holm", "Permutation p", "Holm"]
        rows = [
            (*row, *_p_values(tests.wilcoxon, computed.alpha), *_p_values(tests.permutation, computed.alpha))
            for row, tests in zip(rows, family.comparisons, strict=True)
        ]
    return TextTable(title, tuple(header), tuple(rows), caption=tuple(_test_sentences(family, computed)))


def _p_values(result: TestResult, alpha: float) -> tuple[Text, Text]:
    significant = result.adjusted is not None and result.adjusted <= alpha
    return Text(_p_text(result.p)), Text(_p_text(result.adjusted), flags=SIGNIFICANT if significant else "")


def _p_text(p: float | None) -> str:
    if p is None:
        return "–"
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def _any_p(comparisons: Sequence[MethodTests]) -> bool:
    return any(tests.wilcoxon.p is not None or tests.permutation.p is not None for tests in comparisons)


def _test_sentences(family: Family, computed: Statistics) -> list[str]:
    unit = (
        "Unit: a dataset; it counts with the difference of the two means over seeds as printed, in percentage points."
    )
    sentences = [unit]
    if _any_p(family.comparisons):
        sentences = [
            "Two-sided Wilcoxon signed-rank test (ties share ranks, zero differences left out) and paired permutation "
            f"test of the mean difference, exact for up to {EXACT} datasets. {unit}",
            f"Holm: corrected over {len(family.comparisons)} methods, for each test by itself; {SIGNIFICANT}: at most "
            f"{computed.alpha:g}.",
        ]
    reasons = dict.fromkeys(tests.wilcoxon.reason for tests in family.comparisons if tests.wilcoxon.reason)
    sentences += [f"No p-value with {reason}." for reason in list(reasons)[:3]]
    if family.left_out:
        methods = "; ".join(f"{one_line(method)} ({why})" for method, why in family.left_out.items())
        sentences.append(f"Left out: {methods}.")
    if family.gaps:
        gaps = "; ".join(f"{one_line(gap.method)} on {one_line(gap.dataset)} ({gap.reason})" for gap in family.gaps)
        sentences.append(f"Cells that do not count, so that pairs with them are missing: {gaps}.")
    sentences += [
        f"{count} of the {len(family.datasets)} datasets are variants of one ({name}) and count as independent here, "
        "which flatters the tests."
        for name, count in family.related.items()
    ]
    return sentences


def _ranks(family: Family, suffix: str) -> TextTable:
    ranking = family.ranking
    letters = _letters(ranking.groups)
    grouped = ranking.critical is not None and ranking.critical <= len(ranking.ranks) - 1
    rows = [
        (Text(one_line(m)), Text(f"{rank:.2f}"), *([Text(letters.get(m, "–"))] if grouped else []))
        for m, rank in ranking.ranks.items()
    ]
    header = ("Method", "Average rank", *(["Group"] if grouped else []))
    better = "highest" if family.higher_is_better else "lowest"
    sentences = [
        f"Average rank of the means over seeds as printed, over {_count(len(ranking.datasets))}; 1 is the {better} "
        "mean, ties share their mean rank.",
        _friedman_sentence(ranking.friedman, ranking.alpha),
    ]
    if ranking.critical is not None:
        sentences.append(_critical_sentence(ranking, ranking.critical))
    if ranking.wilcoxon_groups is not None:
        groups = "; ".join(", ".join(map(one_line, group)) for group in ranking.wilcoxon_groups) or "none"
        alternative = "Groups that pairwise Wilcoxon tests with Holm's correction over all pairs do not tell apart"
        sentences.append(f"{alternative}: {groups}.")
    elif ranking.wilcoxon_reason:
        sentences.append(f"No groups by Wilcoxon tests: {ranking.wilcoxon_reason}.")
    if ranking.left_out:
        sentences.append(f"Not ranked, as they lack a value: {', '.join(map(one_line, ranking.left_out))}.")
    dropped = [d for i, d in enumerate(family.datasets) if i not in ranking.datasets]
    if dropped:
        sentences.append(f"Datasets left out because methods lack a value there: {', '.join(map(one_line, dropped))}.")
    return TextTable(f"Average ranks{suffix}", header, tuple(rows), caption=tuple(sentences))


def _count(datasets: int) -> str:
    return "1 dataset" if datasets == 1 else f"{datasets} datasets"


def _friedman_sentence(test: Friedman, alpha: float) -> str:
    if test.p is None or test.chi_square is None:
        return f"No Friedman test and no critical difference: {test.reason}."
    k, n = test.methods, test.datasets
    result = f"Friedman's test, {k} methods on {n} datasets: "
    result += f"chi-square({k - 1}) = {test.chi_square:.2f}, {_p_equals(test.p)}"
    if test.f is not None:
        result += f"; Iman and Davenport's F({k - 1}, {(k - 1) * (n - 1)}) = {test.f:.2f}, {_p_equals(test.f_p)}"
    rough = " The p-values are rough for fewer than 10 datasets or 6 methods." if n < 10 or k < 6 else ""
    verdict = "" if test.p <= alpha else " It does not reject that all rank alike; do not read the order of the ranks."
    return f"{result}.{rough}{verdict}"


def _p_equals(p: float | None) -> str:
    text = _p_text(p)
    return f"p {text[0]} {text[1:]}" if text.startswith("<") else f"p = {text}"


def _critical_sentence(ranking: Ranking, critical: float) -> str:
    sentence = f"Nemenyi's critical difference at {ranking.alpha:g}: {critical:.2f}"
    largest = len(ranking.ranks) - 1
    if critical <= largest:
        return f"{sentence}; methods with a letter in common do not differ by it."
    enough = ceil(len(ranking.datasets) * (critical / largest) ** 2)
    return f"{sentence}; no two average ranks can differ by so much, at least {enough} datasets are needed."


def _letters(groups: Sequence[Sequence[str]]) -> dict[str, str]:
    """Return the letters of the groups that each method is in."""
    letters: dict[str, str] = {}
    for number, group in enumerate(groups):
        letter = chr(ord("a") + number) if number < 26 else f"({number + 1})"
        for method in group:
            letters[method] = letters.get(method, "") + letter
    return letters


def _records(family: Family, suffix: str) -> TextTable:
    """Lay out wins, ties and losses of each method against each other one."""
    methods = list(family.scores)
    numbered = len(methods) > SEVERAL
    names = [one_line(method) for method in methods]
    header = ["Method", *(str(i) if numbered else name for i, name in enumerate(names, start=1))]
    rows = []
    for number, (method, name) in enumerate(zip(methods, names, strict=True), start=1):
        label = f"{number} {name}" if numbered else name
        rows.append((Text(label), *(_record(family, method, other) for other in methods)))
    sentence = (
        "Row against column: datasets won/tied/lost, by the means over seeds as printed, where both have a value; "
        f"{_count(len(family.datasets))}."
    )
    return TextTable(f"Win/tie/loss{suffix}", tuple(header), tuple(rows), caption=(sentence,))


def _record(family: Family, method: str, other: str) -> Text:
    record = family.records.get((method, other))
    return Text(f"{record.wins}/{record.ties}/{record.losses}") if record and record.n else NOTHING
