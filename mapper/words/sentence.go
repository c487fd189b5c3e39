package words

import "strings"

// fill fills in the fields of a sentence:
//
//	{field}        the field
//	{field|text}   the text if the field is empty
//	[text]         nothing if a field of the text is empty
//	[text~other]   the other text then
//
// It reports whether all fields had a value.
func fill(sentence string, value func(field string) string) (string, bool) {
	var out strings.Builder
	full := true
	for {
		i := strings.IndexAny(sentence, "{[")
		if i < 0 {
			out.WriteString(sentence)
			return out.String(), full
		}
		out.WriteString(sentence[:i])
		inner := bracketed(sentence[i:])
		var said, otherwise string
		if sentence[i] == '{' {
			var field string
			field, otherwise, _ = strings.Cut(inner, "|")
			said = value(field)
			full = full && said != ""
		} else {
			var text string
			text, otherwise, _ = strings.Cut(inner, "~")
			if part, whole := fill(text, value); whole {
				said, otherwise = part, ""
			}
		}
		if said == "" {
			said, _ = fill(otherwise, value)
		}
		out.WriteString(said)
		sentence = sentence[i+len(inner)+2:]
	}
}

// bracketed returns the text between the bracket with which s begins and its closing
// bracket.
func bracketed(s string) string {
	depth := 0
	for i := range s {
		switch s[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return s[1:i]
			}
		}
	}
	panic("a sentence without a closing bracket: " + s)
}
