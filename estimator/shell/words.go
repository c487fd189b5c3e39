package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// words expands the words of a command. An unquoted variable may expand to several words
// or to none.
func (r *reader) words(list []*syntax.Word) (words []string) {
	for _, w := range list {
		if len(words) >= maxWords {
			return words
		}
		text, known := r.word(w)
		if _, bare := single[*syntax.ParamExp](w); bare && known {
			words = append(words, strings.Fields(text)...)
			continue
		}
		words = append(words, text)
	}
	return words
}

func single[T syntax.WordPart](w *syntax.Word) (part T, is bool) {
	if len(w.Parts) != 1 {
		return part, false
	}
	part, is = w.Parts[0].(T)
	return part, is
}

// word expands a word. A part with an unknown value stays as written.
func (r *reader) word(w *syntax.Word) (text string, known bool) {
	var b strings.Builder
	known = true
	r.parts(&b, w.Parts, false, &known)
	if b.Len() > maxWord {
		return r.text(w), false
	}
	return b.String(), known
}

func (r *reader) parts(b *strings.Builder, parts []syntax.WordPart, quoted bool, known *bool) {
	for _, p := range parts {
		if b.Len() > maxWord {
			return
		}
		switch p := p.(type) {
		case *syntax.Lit:
			b.WriteString(unescaped(p.Value, quoted))
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			r.parts(b, p.Parts, true, known)
		case *syntax.ParamExp:
			if value, ok := r.variable(p); ok {
				b.WriteString(value[:min(len(value), maxWord+1)])
				continue
			}
			*known = false
			b.WriteString(r.text(p))
		default: // command output, arithmetic
			*known = false
			b.WriteString(r.text(p))
		}
	}
}

// variable returns the value of $NAME, ${NAME} or ${NAME:-default}, or false if it is
// unknown.
func (r *reader) variable(p *syntax.ParamExp) (string, bool) {
	if p.Param == nil || p.Excl || p.Length || p.Width || p.Index != nil || p.Slice != nil || p.Repl != nil || p.Names != 0 {
		return "", false
	}
	value, known := r.vars[p.Param.Value]
	if p.Exp == nil {
		return value, known
	}
	switch op := p.Exp.Op; {
	case op != syntax.DefaultUnset && op != syntax.DefaultUnsetOrNull && op != syntax.AssignUnset && op != syntax.AssignUnsetOrNull:
		return "", false
	case known && (value != "" || op == syntax.DefaultUnset || op == syntax.AssignUnset):
		return value, true
	case p.Exp.Word == nil:
		return "", true
	}
	return r.word(p.Exp.Word)
}

// unescaped removes the backslashes that a shell would remove.
func unescaped(text string, quoted bool) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '\\' && i+1 < len(text) && (!quoted || strings.IndexByte("$`\"\\\n", text[i+1]) >= 0) {
			if i++; text[i] != '\n' {
				b.WriteByte(text[i])
			}
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}
