"""`hogwild inspect`."""

import argparse
import dataclasses
import json
import textwrap

from hogwild.cli.options import add_index_base, index_base, plain

QUANTILES = ("least", "5 %", "25 %", "median", "75 %", "95 %", "most")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("data", metavar="DATA", help="svmlight text (also .gz, .bz2) or .npz")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_index_base(parser)


def run(parsed: argparse.Namespace) -> int:
    """Prints the shape of the data and what it means for scaling."""
    from hogwild.data.files import load
    from hogwild.data.statistics import meaning, statistics

    rows = load(parsed.data, index_base=index_base(parsed), labels=False)
    found = statistics(rows)
    if parsed.json:
        print(json.dumps(dataclasses.asdict(found) | {"meaning": meaning(found)}))
        return 0
    print(
        f"rows        {found.rows:,}"
        + (f", {found.empty_rows:,} of them empty" if found.empty_rows else "")
    )
    print(f"columns     {found.columns:,}, {found.columns_used:,} of them used")
    print(f"non-zeros   {found.nonzeros:,}, {rows.nbytes / 1e6:,.0f} MB in memory")
    lengths = ", ".join(
        f"{name} {n:,}" for name, n in zip(QUANTILES, found.row_lengths, strict=True)
    )
    print(f"row length  {lengths}")
    print(f"values      {found.value_range[0]:g} to {found.value_range[1]:g}")
    print(f"labels      {_labels(found.labels, found.label_kinds, found.rows)}")
    print(f"Omega       {found.omega:,}   most non-zeros in a row")
    print(f"Delta       {found.delta:.4f}   share of the rows that hold the commonest column")
    how = "" if found.rho_exact else f" (at least; the largest among {found.rho_sample:,} rows)"
    print(f"rho         {found.rho:.4f}   largest share of the rows that one row meets{how}")
    hot = [entry for entry in found.heat if entry[0] < found.columns_used]
    if hot:
        heat = ", ".join(f"{100 * share:.0f} % in the {columns:,}" for columns, share in hot)
        print(f"heat        of the non-zeros, {heat} commonest columns")
    print("\n" + textwrap.fill(meaning(found), 96))
    return 0


def _labels(counts: tuple[tuple[object, int], ...], kinds: int, rows: int) -> str:
    if not counts:
        return "none"
    shown = ", ".join(f"{plain(label)}: {n:,} ({100 * n / rows:.1f} %)" for label, n in counts)
    return shown + (f", and {kinds - len(counts):,} more" if kinds > len(counts) else "")
