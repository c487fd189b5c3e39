package endtext

import (
	"strings"

	"carma/internal/lazyregexp"
)

// Forms of words that may reveal who ran a program, and where.
var private = []struct {
	match func() matcher
	with  string
}{
	{of(`[a-zA-Z][a-zA-Z0-9+.-]*://[^\s"'<>)]+`), "URL"},
	{of(`[\w.+-]+@[\w-]+(\.[\w-]+)+`), "EMAIL"},
	{of(`(?i)\b(token|secret|password|passwd|api[_-]?key|authorization|bearer)(["']?\s*[:=]\s*|\s+)["']?[^\s"',;]+`), "$1=SECRET"},
	{of(`\b(hf|sk|ghp|gho|glpat|xox[a-z])[_-][A-Za-z0-9_-]{8,}`), "SECRET"},
	{of(`\b\d{1,3}(\.\d{1,3}){3}(:\d+)?\b`), "ADDRESS"},
	{of(`\b(GPU|MIG)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "GPU-UUID"},
	{of(`\b0x[0-9a-fA-F]{6,}\b`), "0xADDRESS"},
	{of(`\b[0-9a-fA-F]{16,}\b`), "HEX"},
	{of(`(/(?:home|root|Users|data|mnt|scratch|work|workspace|gpfs|lustre|nfs|net|media|srv|tmp|export|storage)[^\s"':,)\]]*/)([^/\s"':,)\]]+)`), "/path/$2"},
}

type matcher interface {
	ReplaceAllString(src, with string) string
}

func of(text string) func() matcher {
	re := lazyregexp.New(text)
	return func() matcher { return re() }
}

// Anonymise replaces the parts of a line of output that may reveal who ran the program:
// the names given, addresses, URLs, secrets, and the folders of paths. It keeps the words
// about the cause of the end.
func Anonymise(line string, names ...string) string {
	line = ansi().ReplaceAllString(line, "")
	for _, p := range private {
		line = p.match().ReplaceAllString(line, p.with)
	}
	for _, name := range names {
		if len(name) > 2 {
			line = strings.ReplaceAll(line, name, "NAME")
		}
	}
	return line
}
