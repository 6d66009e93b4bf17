// The frame of a report as one HTML page: no script, no external requests, light and dark.

import Support

/// Writes pages of figures and plots.
package enum ReportPage {
    /// - Parameters:
    ///   - title: plain text.
    ///   - sub: plain text, under the title.
    ///   - content: HTML.
    package static func html(title: String, sub: String, content: String) -> String {
        """
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <title>\(HTMLText.escaped(title))</title>
        <style>
        \(style)
        </style>
        </head>
        <body>
        <main>
        <header>
        <h1>\(HTMLText.escaped(title))</h1>
        <p class="sub">\(HTMLText.escaped(sub))</p>
        </header>
        \(content)
        </main>
        </body>
        </html>

        """
    }

    /// A legend of colours.
    package static func legend(_ items: [(kind: String, name: String)]) -> String {
        "<p class=\"legend\">"
            + items.map {
                "<span class=\"key\"><span class=\"swatch \($0.kind)\"></span>\(HTMLText.escaped($0.name))</span>"
            }
            .joined()
            + "</p>"
    }

    /// On a phone, wide content keeps a readable width and scrolls, also by keyboard.
    package static func scrolling(_ name: String, _ content: String) -> String {
        "<div class=\"scroll\" role=\"region\" aria-label=\"\(HTMLText.escaped(name))\" tabindex=\"0\">\n\(content)\n</div>"
    }

    /// Colours that can be distinguished without separating red from green, on
    /// light and dark backgrounds.
    private static let style = """
        :root { --ground: #fbfbfa; --card: #ffffff; --text: #1c2024; --soft: #5c656e; --line: #e2e5e8; --before: #9aa5b1; --after: #2563c9;
          --newly: #d9730d; --gone: #0e8074; --failed: #b4495e; --open: #c4cad0; --note: #fff6e5; --noteline: #e8c87a; }
        @media (prefers-color-scheme: dark) { :root { --ground: #14171a; --card: #1c2024; --text: #e8eaed; --soft: #9aa5b1; --line: #30363c;
          --before: #76818d; --after: #6ea4ff; --newly: #f0944d; --gone: #3cb8aa; --failed: #e07a90; --open: #4a525a; --note: #2a2517;
          --noteline: #6b5a2c; } }
        * { box-sizing: border-box; }
        body { margin: 0; background: var(--ground); color: var(--text);
          font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
        main { max-width: 860px; margin: 0 auto; padding: 32px 20px 64px; }
        h1 { font-size: 24px; line-height: 1.25; margin: 0; overflow-wrap: anywhere; }
        h2 { font-size: 16px; margin: 0 0 8px; }
        .sub { color: var(--soft); font-size: 13px; margin: 6px 0 0; }
        section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 18px 20px; margin-top: 18px; }
        .tiles { display: grid; grid-template-columns: 1.45fr 1fr 1fr 1fr; gap: 12px; margin-top: 22px; }
        @media (max-width: 720px) { .tiles { grid-template-columns: 1fr 1fr; } .tile:first-child { grid-column: 1 / -1; } }
        .tile { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 14px 16px; }
        .tile .name { color: var(--soft); font-size: 13px; }
        .tile .value { font-size: 22px; font-weight: 600; font-variant-numeric: tabular-nums; margin: 2px 0; white-space: nowrap; }
        .tile .detail { color: var(--soft); font-size: 12.5px; }
        .arrow { color: var(--soft); font-weight: 400; }
        .notes { background: var(--note); border-color: var(--noteline); }
        .notes ul { margin: 0; padding-left: 18px; } .notes li { margin: 4px 0; font-size: 13.5px; }
        .legend { margin: 0 0 6px; font-size: 13px; color: var(--soft); } .key { margin-right: 16px; white-space: nowrap; }
        .swatch { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 6px; vertical-align: -1px; }
        .swatch.before { background: var(--before); } .swatch.after { background: var(--after); } .swatch.newly { background: var(--newly); }
        .swatch.gone, .swatch.passed { background: var(--gone); } .swatch.failed { background: var(--failed); }
        .swatch.abandoned { background: var(--newly); } .swatch.open { background: var(--open); }
        svg { display: block; width: 100%; height: auto; font: 12px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; }
        svg text { fill: var(--soft); } svg text.strong { fill: var(--text); font-variant-numeric: tabular-nums; }
        svg .grid { stroke: var(--line); } svg .axis { stroke: var(--soft); }
        svg .line { fill: none; stroke-width: 2.25; stroke-linejoin: round; stroke-linecap: round; }
        svg .line.before { stroke: var(--before); } svg .line.after { stroke: var(--after); }
        svg .dot.before { fill: var(--before); } svg .dot.after { fill: var(--after); }
        svg .bar.before { fill: var(--before); } svg .bar.after { fill: var(--after); } svg .bar.newly { fill: var(--newly); }
        svg .bar.gone, svg .bar.passed { fill: var(--gone); } svg .bar.failed { fill: var(--failed); }
        svg .bar.abandoned { fill: var(--newly); } svg .bar.open { fill: var(--open); }
        .scroll { overflow-x: auto; margin-top: 14px; } .scroll:focus-visible { outline: 2px solid var(--after); outline-offset: 4px; }
        @media (max-width: 760px) { .scroll svg { min-width: 720px; } .scroll table { min-width: 560px; } }
        table { border-collapse: collapse; width: 100%; font-size: 13px; font-variant-numeric: tabular-nums; }
        th, td { padding: 6px 10px; border-bottom: 1px solid var(--line); text-align: right; font-weight: 400; }
        thead th { color: var(--soft); border-bottom-color: var(--line); } th[scope=row], thead tr:first-child th:first-child { text-align: left; }
        thead th[colspan] { text-align: center; } tbody tr:last-child > * { border-bottom: 0; } .none { color: var(--soft); }
        code { font: 12.5px ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
        """
}
