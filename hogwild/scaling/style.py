"""The style of the page: light, dark and printed.

The colours are those of Okabe and Ito (2008), which colour-blind people tell apart, somewhat darker
on white and lighter on black.
"""

from collections.abc import Iterable

# Of strategies, on white and on black
LINES = {
    "#0072b2": "#4fb0f0",
    "#c24a00": "#ff8a4a",
    "#007f5c": "#2fcb9c",
    "#a8467e": "#f09cc8",
    "#a87400": "#f5b93d",
    "#2b8cbe": "#9ad7ff",
    "#6b6b6b": "#b9b9b9",
    "#7a5c00": "#d9c26a",
}
# Of the parts of a bar
PARTS = {
    "#0072b2": "#4fb0f0",
    "#e69f00": "#f5b93d",
    "#009e73": "#2fcb9c",
    "#cc79a7": "#f09cc8",
    "#b3b3b3": "#6e6e6e",
}

REST = """
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 100%/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.6rem; line-height: 1.2; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2rem 0 .5rem; border-bottom: 1px solid var(--rule); }
h3 { font-size: 1rem; margin: 1.2rem 0 .2rem; }
p, li { max-width: 46rem; margin: .3rem 0; }
.short { font-size: 1.15rem; border-left: .3rem solid var(--l0); padding: .3rem .8rem; }
.do { font-style: italic; }
.note { border-left: .3rem solid var(--l1); padding-left: .8rem; }
.plots { display: grid; gap: 1.5rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 25rem), 1fr)); }
figure { margin: 0; min-width: 0; }
figcaption { font-size: .9rem; color: var(--faint); }
svg { display: block; height: auto; max-width: 44rem; }
svg text { fill: var(--ink); font-family: inherit; }
.axis { stroke: var(--ink); fill: none; }
.grid { stroke: var(--rule); fill: none; }
.stroke { fill: none; stroke-width: 2; stroke-linejoin: round; }
.range { fill: none; stroke-width: 1.2; }
.marker { stroke: var(--paper); stroke-width: .8; }
.mark { stroke: var(--ink); stroke-width: 2; fill: none; }
.part { stroke: var(--paper); stroke-width: .5; }
.hatch { stroke: var(--ink); stroke-width: .8; fill: none; opacity: .65; }
.scroll { overflow-x: auto; max-width: 100%; margin: .5rem 0; }
.long { max-height: 24rem; overflow-y: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; text-align: right; white-space: nowrap; }
th { font-weight: 600; }
thead th { border-bottom: 1px solid var(--ink); vertical-align: bottom; }
th.group { text-align: center; border-bottom: 1px solid var(--rule); }
tbody tr:nth-child(even) { background: var(--band); }
tbody th { text-align: left; }
table.pairs th, table.pairs td { text-align: left; white-space: normal; vertical-align: top; }
@media print {
  body { font-size: 10pt; }
  figcaption { font-size: 8pt; }
  main { max-width: none; padding: 0; }
  .plots { grid-template-columns: 1fr 1fr; }
  figure, article, tr { break-inside: avoid; }
  .scroll, .long { overflow: visible; max-height: none; }
  table { font-size: 8pt; }
  th, td { padding: .1rem .3rem; }
  .part, .hatch, .stroke { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""


def sheet() -> str:
    """The whole style sheet."""
    light = {"paper": "#fff", "ink": "#111", "faint": "#555", "rule": "#ddd", "band": "#f5f5f5"}
    dark = {"paper": "#111", "ink": "#eee", "faint": "#aaa", "rule": "#3a3a3a", "band": "#1c1c1c"}
    light |= _numbered("l", LINES) | _numbered("p", PARTS)
    dark |= _numbered("l", LINES.values()) | _numbered("p", PARTS.values())
    lines = [
        f".c{number} .stroke, .c{number} .range {{ stroke: var(--{name}); }} "
        f".c{number} .marker {{ fill: var(--{name}); }}"
        for number, name in enumerate([*_numbered("l", LINES), "ink"])
    ]
    parts = [f".p{n} {{ fill: var(--p{n}); }}" for n in range(len(PARTS))]
    return "\n".join(
        [
            f":root {{ color-scheme: light dark; {_variables(light)} }}",
            f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {_variables(dark)} }} }}",
            REST.strip(),
            *lines,
            *parts,
        ]
    )


def _numbered(letter: str, colours: Iterable[str]) -> dict[str, str]:
    return {f"{letter}{number}": colour for number, colour in enumerate(colours)}


def _variables(values: dict[str, str]) -> str:
    return " ".join(f"--{name}: {value};" for name, value in values.items())
