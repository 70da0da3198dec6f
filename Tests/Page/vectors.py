"""Texts that would run as a script if the page took them for anything but text."""

RUN = "window.__ran.push(1)"

VECTORS = (
    f"<script>{RUN}</script>",
    f"</script><script>{RUN}</script>",
    f"<img src=x onerror={RUN}>",
    f"\"><img src=x onerror={RUN}>",
    f"'><svg onload={RUN}>",
    f"<svg><animate onbegin={RUN} attributeName=x dur=1s>",
    f"<svg><a xlink:href=javascript:{RUN}><text>x</text></a></svg>",
    f"<iframe srcdoc=\"<script>parent.{RUN}</script>\"></iframe>",
    f"<iframe src=javascript:parent.{RUN}></iframe>",
    f"<object data=javascript:{RUN}></object>",
    f"<details open ontoggle={RUN}>",
    f"<input autofocus onfocus={RUN}>",
    f"<video><source onerror={RUN}></video>",
    f"<body onload={RUN}>",
    f"<style>@import 'javascript:{RUN}';</style>",
    f"<math><mtext><table><mglyph><style><img src=x onerror={RUN}>",
    f"\" onmouseover={RUN} autofocus onfocus={RUN} x=\"",
    f"' style='animation-name:x' onanimationstart={RUN} '",
    f"javascript:{RUN}",
    f"data:text/html,<script>opener.{RUN}</script>",
    f"${{{RUN}}}",
    f"{{{{constructor.constructor('{RUN}')()}}}}",
    f"`;{RUN};`",
    f"&lt;img src=x onerror={RUN}&gt;",
    f"&#60;script&#62;{RUN}&#60;/script&#62;",
    f"%3Cimg%20src=x%20onerror={RUN}%3E",
    f"]]><script>{RUN}</script>",
    f"--><script>{RUN}</script><!--",
    f"#/graphs/../../<script>{RUN}</script>?x=1&y#z",
    f"__proto__<b onclick={RUN}>bold</b>",
    # Marks that turn the direction of what follows, and characters that take no room.
    f"\u202egnp.\u2066<img src=x onerror={RUN}>\u2069\u200b\ufeff",
    f"</title></textarea></noscript><img src=x onerror={RUN}>",
)
