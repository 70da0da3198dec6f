/// The colours and the layout of reports and pictures: light and dark, as the reader's system is.
/// Every state has a sign or a word as well, for those who see no colours.
enum ReportStyle {
    static let picture: StaticString = """
        svg{--ink:#1c2024;--line:#8b949e;--good:#1a7f37;--good-fill:#dafbe1;\
        --bad:#cf222e;\
        --bad-fill:#ffebe9;--odd:#9a6700;--odd-fill:#fff8c5;--run:#0969da;--run-fill:#ddf4ff;\
        --rest-fill:#f6f8fa;--critical:#8250df;font:12px ui-sans-serif,system-ui,sans-serif}
        @media(prefers-color-scheme:dark){svg{--ink:#e6edf3;--line:#6e7681;\
        --good:#3fb950;\
        --good-fill:#12301c;--bad:#f85149;--bad-fill:#3c1618;--odd:#d29922;--odd-fill:#342a10;\
        --run:#58a6ff;--run-fill:#12263f;--rest-fill:#161b22;--critical:#a371f7}}
        .box rect{fill:var(--rest-fill);stroke:var(--line)}.box text{fill:var(--ink);\
        text-anchor:middle}
        .box.succeeded rect{fill:var(--good-fill);stroke:var(--good)}
        .box.failed rect{fill:var(--bad-fill);stroke:var(--bad);stroke-width:2}
        .box.cancelled rect,.box.skipped rect{fill:var(--odd-fill);stroke:var(--odd)}
        .box.running rect{fill:var(--run-fill);stroke:var(--run)}
        .box.critical rect{stroke-width:2.5}
        .arrow{fill:none;stroke:var(--line)}.arrow.critical{stroke:var(--critical);\
        stroke-width:2.5}

        """

    static let page: StaticString = """
        :root{color-scheme:light dark;--ink:#1c2024;--soft:#57606a;--paper:#fff;--edge:#d0d7de;\
        --bad:#cf222e;\
        --good:#1a7f37;--odd:#9a6700;--fold:#f6f8fa}
        @media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9198a1;--paper:#0d1117;\
        --edge:#30363d;\
        --bad:#f85149;--good:#3fb950;--odd:#d29922;--fold:#161b22}}
        body{margin:0 auto;padding:24px;max-width:1240px;background:var(--paper);\
        color:var(--ink);\
        font:15px/1.5 ui-sans-serif,system-ui,sans-serif}
        h1{font-size:24px;margin:0 0 4px;overflow-wrap:anywhere}h2{font-size:18px;\
        margin:32px 0 8px}
        h3{font-size:15px;margin:16px 0 4px;overflow-wrap:anywhere}p{margin:4px 0}
        .soft{color:var(--soft)}.succeeded{color:var(--good)}.failed{color:var(--bad)}
        .cancelled,.skipped{color:var(--odd)}
        dl{display:grid;grid-template-columns:repeat(auto-fit,minmax(140px,1fr));gap:8px 24px;\
        margin:16px 0}
        dt{color:var(--soft);font-size:13px}dd{margin:0;font-size:17px}
        pre{background:var(--fold);border:1px solid var(--edge);border-radius:6px;\
        padding:8px 12px;\
        overflow-x:auto;font:13px/1.4 ui-monospace,monospace;white-space:pre-wrap;\
        overflow-wrap:anywhere}
        .wide{overflow-x:auto;border:1px solid var(--edge);border-radius:6px}
        .timeline{width:100%;min-width:700px;display:block}
        .worker{fill:var(--ink);text-anchor:end}.time{fill:var(--soft);text-anchor:middle}
        .mark{stroke:var(--edge)}.bar{fill:var(--line)}.bar.succeeded{fill:var(--good)}
        .bar.failed{fill:var(--bad)}.bar.cancelled,.bar.skipped{fill:var(--odd)}
        .wait{stroke:var(--line);stroke-width:2;fill:none}
        .bar.critical{stroke:var(--critical);stroke-width:1.5}
        table{border-collapse:collapse;width:100%;font-size:14px}
        th,td{text-align:left;padding:3px 12px 3px 0;border-bottom:1px solid var(--edge);\
        vertical-align:top}
        td{overflow-wrap:anywhere}td.n,th.n{text-align:right;white-space:nowrap}
        @media print{body{max-width:none;padding:0}}

        """
}
