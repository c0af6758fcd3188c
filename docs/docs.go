// Package docs holds the pages of this folder that the program itself can print.
package docs

import (
	_ "embed"
	"strings"
)

//go:embed findings.md
var findings string

// Finding is the section of findings.md about a code, without its heading; false if there is none.
func Finding(code string) (string, bool) {
	_, rest, ok := strings.Cut(findings, "\n## "+code+"\n")
	if !ok || code == "" {
		return "", false
	}
	section, _, _ := strings.Cut(rest, "\n## ")
	return strings.TrimSpace(section) + "\n", true
}
