package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// read adds the commands of a script.
func (r *reader) read(script string, sure bool) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil {
		return
	}
	r.script = script
	if strings.Contains(script, "PIPESTATUS") || strings.Contains(script, "pipestatus") {
		r.pipefail = true // the script checks the status of the parts
	}
	r.statements(file.Stmts, sure)
}

func (r *reader) statements(list []*syntax.Stmt, sure bool) {
	for _, s := range list {
		r.statement(s, sure)
	}
}

func (r *reader) statement(s *syntax.Stmt, sure bool) {
	if s == nil {
		return
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		r.call(c, sure)
	case *syntax.DeclClause:
		r.declare(c)
	case *syntax.BinaryCmd:
		r.binary(c, sure)
	case *syntax.Subshell:
		r.statements(c.Stmts, sure)
	case *syntax.Block:
		r.statements(c.Stmts, sure)
	case *syntax.TimeClause:
		r.statement(c.Stmt, sure)
	case *syntax.IfClause:
		r.statements(c.Cond, sure)
		for branch := c; branch != nil; branch = branch.Else {
			r.statements(branch.Then, false)
		}
	case *syntax.WhileClause:
		r.statements(c.Do, false)
	case *syntax.ForClause:
		r.statements(c.Do, false)
	case *syntax.CaseClause:
		for _, item := range c.Items {
			r.statements(item.Stmts, false)
		}
	case *syntax.FuncDecl:
		r.statement(c.Body, false)
	}
}

func (r *reader) binary(c *syntax.BinaryCmd, sure bool) {
	switch c.Op {
	case syntax.Pipe, syntax.PipeAll:
		r.pipe(c, sure)
	case syntax.OrStmt:
		r.statement(c.X, sure)
		r.statement(c.Y, false)
	default:
		r.statement(c.X, sure)
		r.statement(c.Y, sure)
	}
}

// pipe adds a pipeline. The parser returns a | b | c as (a | b) | c, so pipe flattens it.
func (r *reader) pipe(c *syntax.BinaryCmd, sure bool) {
	var parts []*syntax.Stmt
	var collect func(*syntax.Stmt)
	collect = func(s *syntax.Stmt) {
		if b, ok := s.Cmd.(*syntax.BinaryCmd); ok && (b.Op == syntax.Pipe || b.Op == syntax.PipeAll) {
			collect(b.X)
			collect(b.Y)
			return
		}
		parts = append(parts, s)
	}
	collect(c.X)
	collect(c.Y)
	p := Pipe{Text: r.text(c), Failing: r.pipefail}
	for _, part := range parts {
		before := len(r.line.Commands)
		r.statement(part, sure)
		if all := r.line.Commands[before:]; len(all) > 0 {
			p.Commands = append(p.Commands, all[len(all)-1])
		} else {
			p.Commands = append(p.Commands, Command{})
		}
	}
	r.line.Pipes = append(r.line.Pipes, p)
}

// text returns the source of a node, with white space collapsed to one line.
func (r *reader) text(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from > to || to > len(r.script) {
		return ""
	}
	return strings.Join(strings.Fields(r.script[from:to]), " ")
}

// call adds a command, or sets variables.
func (r *reader) call(c *syntax.CallExpr, sure bool) {
	var env []string
	for _, a := range c.Assigns {
		if kv, ok := r.assigned(a); ok {
			env = append(env, kv)
		}
	}
	if len(c.Args) == 0 {
		for _, kv := range env {
			r.set(kv, false)
		}
		return
	}
	words := r.words(c.Args)
	if len(words) == 0 {
		return
	}
	switch words[0] {
	case "set":
		r.options(words[1:])
		return
	case "unset":
		for _, name := range words[1:] {
			delete(r.vars, name)
			r.exported = slices.DeleteFunc(slices.Clone(r.exported), func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
		}
		return
	}
	r.command(words, env, sure, false)
}

// options reads the arguments of set, such as -euo pipefail.
func (r *reader) options(words []string) {
	for i, w := range words {
		if i > 0 && w == "pipefail" && len(words[i-1]) > 1 && strings.HasSuffix(words[i-1], "o") {
			r.pipefail = words[i-1][0] == '-'
		}
	}
}

// declare reads declarations such as export NAME=value.
func (r *reader) declare(c *syntax.DeclClause) {
	exports := c.Variant.Value == "export"
	for _, a := range c.Args {
		switch kv, ok := r.assigned(a); {
		case ok:
			r.set(kv, exports)
		case exports && a.Name != nil:
			if value, known := r.vars[a.Name.Value]; known {
				r.set(a.Name.Value+"="+value, true)
			}
		case a.Name == nil && a.Value != nil:
			if lit, _ := r.word(a.Value); lit == "-x" {
				exports = true
			}
		}
	}
}

// assigned returns an assignment as NAME=value, or false if it assigns no plain text.
func (r *reader) assigned(a *syntax.Assign) (kv string, ok bool) {
	if a.Name == nil || a.Naked || a.Index != nil || a.Array != nil || a.Append {
		return "", false
	}
	value := ""
	if a.Value != nil {
		value, _ = r.word(a.Value)
	}
	return a.Name.Value + "=" + value, true
}

func (r *reader) set(kv string, exports bool) {
	name, value, _ := strings.Cut(kv, "=")
	if _, is := Lookup(r.exported, name); exports || is {
		r.exported = append(slices.Clone(r.exported), kv)
	}
	r.vars[name] = value
}
