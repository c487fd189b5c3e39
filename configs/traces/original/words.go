package original

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"carma/internal/suggest"
)

// split splits a line of shell into commands, their words, and the comment after them. It
// refuses syntax that a shell would expand or run in another way.
func split(line string) (commands [][]string, comment string, err error) {
	var words []string
	var word strings.Builder
	inWord := false
	endWord := func() {
		if inWord {
			words = append(words, word.String())
			word.Reset()
			inWord = false
		}
	}
	endCommand := func() {
		if endWord(); len(words) > 0 {
			commands = append(commands, words)
			words = nil
		}
	}
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == ' ' || c == '\t' || c == '\r':
			endWord()
		case c == '#' && !inWord:
			endCommand()
			return commands, line[i:], nil
		case c == ';':
			endCommand()
		case c == '&':
			if endCommand(); i+1 < len(line) && line[i+1] == '&' {
				i++
			}
		case c == '\'' || c == '"':
			end := strings.IndexByte(line[i+1:], c)
			if end < 0 {
				return nil, "", fmt.Errorf("a quotation mark is not closed")
			}
			if text := line[i+1 : i+1+end]; c == '"' && strings.ContainsAny(text, "$`\\") {
				return nil, "", errors.New("$, ` and \\ are not understood; write the value out")
			}
			word.WriteString(line[i+1 : i+1+end])
			inWord = true
			i += end + 1
		case strings.IndexByte("$`\\|<>(){}*?[]!", c) >= 0:
			return nil, "", fmt.Errorf("%c is not understood; only sleep and submit.py are read", c)
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	endCommand()
	return commands, "", nil
}

// quote quotes a word for the shell.
func quote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+=:@,") == "" {
		return s
	}
	return "'" + s + "'" // carma's file names have no quotation marks
}

// Notes contains the keys and values of a comment "# carma: key=value ...". Values with
// special characters are quoted as in Go.
type Notes map[string]string

// mark begins a comment with notes.
const mark = "# carma:"

var noteKeys = []string{"name", "campaign", "description", "source", "user", "priority", "mem", "workload"}

// String formats the comment, with its keys in a fixed order.
func (n Notes) String() string {
	b := strings.Builder{}
	b.WriteString(mark)
	for _, key := range noteKeys {
		v, ok := n[key]
		if !ok {
			continue
		}
		if v == "" || strings.Trim(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-") != "" {
			v = strconv.Quote(v)
		}
		b.WriteString(" " + key + "=" + v)
	}
	return b.String()
}

// parseNotes parses a comment. It returns nothing for other comments.
func parseNotes(comment string) (Notes, error) {
	rest, ours := strings.CutPrefix(comment, mark)
	if !ours {
		return nil, nil
	}
	n := Notes{}
	for {
		rest = strings.TrimLeft(rest, " \t\r")
		if rest == "" {
			return n, nil
		}
		key, value, found := strings.Cut(rest, "=")
		if !found || !slices.Contains(noteKeys, key) {
			return nil, fmt.Errorf("%s unknown key %.40q; nearest: %s", mark, key, suggest.Names(key, noteKeys, 1)[0])
		}
		if _, twice := n[key]; twice {
			return nil, fmt.Errorf("%s %s a second time", mark, key)
		}
		if !strings.HasPrefix(value, `"`) {
			n[key], rest, _ = strings.Cut(value, " ")
			continue
		}
		text, err := strconv.QuotedPrefix(value)
		if err != nil {
			return nil, fmt.Errorf("%s %s: a quotation mark is not closed", mark, key)
		}
		rest = value[len(text):]
		n[key], _ = strconv.Unquote(text) // QuotedPrefix has validated it
	}
}
