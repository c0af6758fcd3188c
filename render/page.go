package render

import (
	_ "embed" // for the style sheet
	"fmt"
	"html"
	"io"
)

//go:embed page.css
var pageStyle string

// HTML is s as text of a page: escaped as Escaped does, and for HTML.
func HTML(s string) string { return html.EscapeString(Escaped(s)) }

// BeginPage writes the head of a page of HTML that refers to nothing outside of itself, up to its heading. A browser
// loads nothing for it, whatever it holds; script is the hash of the one script it may run ("sha256-..."), or "".
func BeginPage(w io.Writer, title, about, script string) {
	policy := "default-src 'none'; style-src 'unsafe-inline'"
	if script != "" {
		policy += "; script-src '" + script + "'"
	}
	fmt.Fprintf(w, `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="%s">
<title>%s</title>
<style>
%s</style></head><body>
<a class="skip" href="#main">to the content</a>
<h1>%s</h1>
<p class="dim">%s</p>
<main id="main">
`, policy, HTML(title), pageStyle, HTML(title), HTML(about))
}

// EndPage writes what closes a page.
func EndPage(w io.Writer) { io.WriteString(w, "</main></body></html>\n") }
