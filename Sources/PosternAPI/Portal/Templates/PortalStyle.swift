// How the page looks: one style sheet and one mark, both our own. Colours are at its head, for light and for dark; a test
// computes their contrast.

import MailCrypto
import Support

enum PortalStyle {
    /// Changes with the style sheet or the mark.
    static let version: String = String(
        decoding: Base32.encode(SHA256.hash(Array((css + icon).utf8)).prefix(5)), as: UTF8.self)

    /// A gate with a small door in it. Takes the colour of the text around it.
    static let mark = """
        <svg class="mark" viewBox="0 0 32 32" width="32" height="32" aria-hidden="true" focusable="false">\(shapes)</svg>
        """

    /// The mark as its own file, in a colour for light and for dark tabs.
    static let icon = """
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" color="#1f8a7d">\(shapes)</svg>
        """

    private static let shapes = """
        <path d="M5 27.5V14.5a11 11 0 0 1 22 0v13" fill="none" stroke="currentColor" stroke-width="2.6" stroke-linecap="round"/>\
        <path d="M2.5 27.5h27" stroke="currentColor" stroke-width="2.6" stroke-linecap="round"/>\
        <path fill-rule="evenodd" d="M11 27.5v-8a5 5 0 0 1 10 0v8zM17.6 21.8a1.3 1.3 0 1 0 0 2.6a1.3 1.3 0 0 0 0-2.6z" fill="currentColor"/>
        """

    static let css = """
        :root {
          color-scheme: light dark;
          --page: #f7f6f2;
          --card: #ffffff;
          --sunken: #f0eee7;
          --line: #dfdbcf;
          --edge: #8a867a;
          --text: #1b2430;
          --quiet: #55606b;
          --accent: #0f5c55;
          --accent-hover: #0a4742;
          --on-accent: #ffffff;
          --tile: #dcebe6;
          --on-bg: #dff0e6;
          --on-text: #14532d;
          --off-bg: #f3e7d3;
          --off-text: #6b4305;
          --danger: #a3252b;
          --danger-hover: #84191f;
          --on-danger: #ffffff;
          --wrong-bg: #fbe9e7;
          --wrong-text: #8a1c22;
          --focus: #b45309;
        }
        @media (prefers-color-scheme: dark) {
          :root {
            --page: #12171c;
            --card: #1a2128;
            --sunken: #232c34;
            --line: #303b45;
            --edge: #74818d;
            --text: #e9e7e0;
            --quiet: #a9b3bc;
            --accent: #7fd1c2;
            --accent-hover: #a5e2d7;
            --on-accent: #0c2421;
            --tile: #1f3c39;
            --on-bg: #173527;
            --on-text: #a7e3bd;
            --off-bg: #3d3018;
            --off-text: #f2d294;
            --danger: #f2a09c;
            --danger-hover: #f8c0bd;
            --on-danger: #3a0d0f;
            --wrong-bg: #421d1f;
            --wrong-text: #ffc9c5;
            --focus: #fbbf62;
          }
        }
        *, *::before, *::after { box-sizing: border-box; }
        html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
        body {
          margin: 0; min-height: 100vh; display: flex; flex-direction: column;
          background: var(--page); color: var(--text);
          font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", Helvetica, Arial, sans-serif;
        }
        h1, h2, p, ul, table { margin: 0; }
        ul { padding: 0; list-style: none; }
        h1 { font-size: clamp(1.6rem, 1.3rem + 1.4vw, 2.1rem); line-height: 1.2; letter-spacing: -0.02em; font-weight: 650; overflow-wrap: anywhere; }
        h2 { font-size: 1.125rem; line-height: 1.35; font-weight: 620; overflow-wrap: anywhere; }
        a { color: var(--accent); text-underline-offset: 0.2em; text-decoration-thickness: 0.08em; }
        a:hover { color: var(--accent-hover); }
        code { font-family: ui-monospace, "SF Mono", Menlo, "Cascadia Mono", Consolas, "DejaVu Sans Mono", monospace; font-size: 0.94em; }
        :focus-visible { outline: 3px solid var(--focus); outline-offset: 3px; border-radius: 6px; }
        main:focus { outline: none; }
        .unseen { position: absolute; width: 1px; height: 1px; margin: -1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
        .skip { position: absolute; left: 1rem; top: -4rem; z-index: 2; padding: 0.6rem 1rem; background: var(--card); border-radius: 0 0 8px 8px; }
        .skip:focus { top: 0; }

        .bar { background: var(--card); border-bottom: 1px solid var(--line); }
        .bar-inner { max-width: 46rem; margin: 0 auto; padding: 0.6rem 1.25rem; display: flex; flex-wrap: wrap; align-items: center; gap: 0.25rem 1.5rem; }
        .brand { display: inline-flex; align-items: center; gap: 0.6rem; min-height: 44px; color: var(--text); font-weight: 650; font-size: 1.1rem; text-decoration: none; letter-spacing: -0.01em; }
        .brand .mark { width: 28px; height: 28px; color: var(--accent); }
        .bar nav ul { display: flex; gap: 0.25rem; }
        .bar nav a { display: inline-flex; align-items: center; min-height: 44px; padding: 0 0.75rem; color: var(--quiet); text-decoration: none; border-radius: 8px; font-weight: 550; }
        .bar nav a:hover { color: var(--text); background: var(--sunken); }
        .bar nav a[aria-current] { color: var(--accent); box-shadow: inset 0 -3px 0 var(--accent); border-radius: 8px 8px 0 0; }
        .sign-out { margin-left: auto; }

        main { flex: 1; width: 100%; max-width: 46rem; margin: 0 auto; padding: 2.25rem 1.25rem 3rem; }
        .narrow main { max-width: 29rem; padding-top: 1.25rem; }
        .narrow .bar { background: none; border: 0; padding-top: clamp(1rem, 7vh, 4.5rem); }
        .narrow .bar-inner { justify-content: center; padding-bottom: 0; }
        .narrow .brand { flex-direction: column; gap: 0.5rem; color: var(--quiet); font-size: 1rem; }
        .narrow .brand .mark { width: 60px; height: 60px; }
        .foot { border-top: 1px solid var(--line); padding: 1.25rem; color: var(--quiet); font-size: 0.875rem; text-align: center; }
        .foot p { max-width: 34rem; margin: 0 auto; }

        .head { margin-bottom: 1.75rem; }
        .lead { margin-top: 0.5rem; color: var(--quiet); font-size: 1.0625rem; overflow-wrap: anywhere; }
        .lead strong { color: var(--text); font-weight: 600; }
        .quiet { color: var(--quiet); font-size: 0.9375rem; overflow-wrap: anywhere; }
        .quiet strong { color: var(--text); font-weight: 600; }
        .caution { margin-top: 0.6rem; padding: 0.5rem 0.8rem; border-radius: 8px; background: var(--off-bg); color: var(--off-text); font-size: 0.9375rem; overflow-wrap: anywhere; }
        .caution a { color: inherit; }
        .back { margin-bottom: 0.75rem; font-size: 0.9375rem; }
        .back a { display: inline-flex; align-items: center; min-height: 32px; text-decoration: none; font-weight: 550; }
        .back a::before { content: "←"; margin-right: 0.5rem; }
        .back a:hover { text-decoration: underline; }
        .door { text-align: center; margin-bottom: 1.75rem; }

        .card { background: var(--card); border: 1px solid var(--line); border-radius: 14px; padding: 1.25rem 1.35rem; margin-bottom: 1rem; box-shadow: 0 1px 2px rgb(0 0 0 / 0.04); }
        .card h2 + p, .card h2 + form, .card h2 + table, .card h2 + .field { margin-top: 0.5rem; }
        .card h2 + .rows, .card h2 + .result { margin-top: 0.85rem; }
        .card > p + p { margin-top: 0.75rem; }
        .stack > * + * { margin-top: 1rem; }
        .stack > input[type="hidden"]:first-child + * { margin-top: 0; }
        .empty { text-align: center; padding: 2.5rem 1.5rem; }
        .row { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: 0.75rem 1.25rem; }
        .row > :first-child { flex: 1 1 14rem; min-width: 0; }
        .rows > li + li { border-top: 1px solid var(--line); margin-top: 0.75rem; padding-top: 0.75rem; }
        .rows code { color: var(--quiet); overflow-wrap: anywhere; }
        .points { padding-left: 1.2rem; list-style: disc; }
        .points li + li { margin-top: 0.5rem; }
        .points + p { margin-top: 1rem; }
        .actions { display: flex; flex-wrap: wrap; gap: 0.6rem; margin-top: 1rem; }

        .address-head { display: flex; flex-wrap: wrap; align-items: center; gap: 0.5rem 0.85rem; }
        .names { flex: 1 1 10rem; min-width: 0; }
        .names h2 a { color: inherit; text-decoration: none; }
        .names h2 a:hover { text-decoration: underline; }
        .inbox { overflow-wrap: anywhere; }
        .tile { display: grid; place-items: center; width: 44px; height: 44px; border-radius: 12px; background: var(--tile); color: var(--accent); font-weight: 700; font-size: 1.15rem; }
        .off .tile { background: var(--sunken); color: var(--quiet); }
        .state { display: inline-flex; align-items: center; gap: 0.45rem; padding: 0.2rem 0.7rem; border-radius: 999px; font-size: 0.8125rem; font-weight: 600; white-space: nowrap; }
        .state::before { content: ""; width: 8px; height: 8px; border-radius: 50%; background: currentColor; }
        .is-on { background: var(--on-bg); color: var(--on-text); }
        .is-off { background: var(--off-bg); color: var(--off-text); }
        .is-off::before { background: none; box-shadow: inset 0 0 0 2px currentColor; }
        .mail { margin: 0.9rem 0 0; padding: 0.6rem 0.85rem; background: var(--sunken); border-radius: 9px; }
        .mail code { user-select: all; -webkit-user-select: all; overflow-wrap: anywhere; color: var(--text); }
        .big code { font-size: 1.05rem; }
        .address-foot { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: 0.6rem 1rem; margin-top: 0.9rem; }
        .ended { margin-top: 2.25rem; }
        .ended .rows { margin-top: 0.75rem; }
        .ended .rows a { margin-right: 0.5rem; }
        .ended .rows .quiet a { margin-right: 0; }

        .field label { display: block; font-weight: 600; margin-bottom: 0.4rem; }
        input:not([type="hidden"]) { width: 100%; min-height: 46px; padding: 0.55rem 0.8rem; font: inherit; color: var(--text); background: var(--page); border: 1px solid var(--edge); border-radius: 9px; }
        input::placeholder { color: var(--quiet); opacity: 1; }
        input[aria-invalid] { border-color: var(--wrong-text); border-width: 2px; }
        input.code { max-width: 11rem; font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; letter-spacing: 0.2em; }
        .pair { display: flex; flex-wrap: wrap; gap: 0.6rem; }
        .pair input { flex: 1 1 13rem; width: auto; min-width: 0; }
        .field-problem { margin-top: 0.6rem; color: var(--wrong-text); font-weight: 600; font-size: 0.9375rem; }
        .field-problem::before { content: "! "; font-weight: 800; }
        .help { margin-top: 0.5rem; color: var(--quiet); font-size: 0.9rem; }
        .chips { display: flex; flex-wrap: wrap; gap: 0.4rem; margin-top: 0.5rem; }
        .chips li { padding: 0.1rem 0.55rem; background: var(--sunken); border-radius: 7px; color: var(--text); overflow-wrap: anywhere; }
        .code-form { margin-top: 1rem; }
        .result { padding: 1rem 1.1rem; border: 1px solid var(--accent); border-radius: 11px; margin-bottom: 1.25rem; }
        .result .quiet { margin-top: 0.75rem; }

        button, .button { display: inline-flex; align-items: center; justify-content: center; min-height: 44px; padding: 0.5rem 1.15rem; font: inherit; font-weight: 600; line-height: 1.2; text-decoration: none; color: var(--on-accent); background: var(--accent); border: 1px solid transparent; border-radius: 9px; cursor: pointer; }
        button:hover, .button:hover { background: var(--accent-hover); color: var(--on-accent); }
        button.second, .button.second { color: var(--accent); background: transparent; border-color: var(--edge); }
        button.second:hover, .button.second:hover { color: var(--accent-hover); background: var(--sunken); }
        button.danger, .button.danger { color: var(--on-danger); background: var(--danger); }
        button.danger:hover, .button.danger:hover { background: var(--danger-hover); color: var(--on-danger); }
        button.plain { color: var(--quiet); background: transparent; padding-inline: 0.75rem; font-weight: 550; }
        button.plain:hover { color: var(--text); background: var(--sunken); }
        .stack > button { width: 100%; }

        .message { padding: 0.8rem 1rem; border-radius: 10px; margin-bottom: 1.25rem; font-weight: 550; }
        .done { background: var(--on-bg); color: var(--on-text); }
        .wrong { background: var(--wrong-bg); color: var(--wrong-text); }

        table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
        th, td { padding: 0.5rem 0; text-align: left; border-bottom: 1px solid var(--line); font-weight: 400; }
        thead th { color: var(--quiet); font-size: 0.875rem; font-weight: 550; }
        tfoot th, tfoot td { border-bottom: 0; font-weight: 650; }
        .number { text-align: right; padding-left: 1rem; }

        @media (max-width: 36rem) {
          main { padding: 1.5rem 1rem 2.5rem; }
          .bar-inner { padding: 0.35rem 1rem 0; }
          .bar nav { order: 3; flex-basis: 100%; }
          .bar nav ul { margin: 0 -0.75rem; }
          .card { padding: 1.1rem 1.05rem; }
          .address-foot form, .address-foot button { width: 100%; }
          .actions > *, .actions button { flex: 1 1 auto; }
          .actions button { width: 100%; }
          .pair button { flex: 1 1 auto; }
        }
        @media (prefers-reduced-motion: no-preference) {
          button, .button, a, input { transition: background-color 0.12s, color 0.12s, border-color 0.12s; }
        }
        @media (forced-colors: active) {
          .state, .tile, .card, .message, .mail { border: 1px solid; }
        }
        @media print {
          .bar nav, .sign-out, form, .skip { display: none; }
        }

        """
}
