package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"carma/runner"
)

// document is what the page needs of the API's description.
type document struct {
	Info       struct{ Description string }
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]schema }
}

type operation struct {
	Summary, Description string
	Parameters           []struct {
		Name, In, Description string
		Required              bool
		Schema                schema
	}
	RequestBody struct {
		Content map[string]struct{ Schema schema }
	}
	Responses map[string]struct {
		Description string
		Content     map[string]struct{ Schema schema }
	}
}

type schema struct {
	Ref         string `json:"$ref"`
	Type        any
	Format      string
	Description string
	Items       *schema
	Properties  map[string]schema
	Required    []string
}

// api makes the page of the API from its description.
func api() (*page, error) {
	text, err := runner.OpenAPI()
	if err != nil {
		return nil, err
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("the API's description: %w", err)
	}
	return parse(apiPage, d.markdown())
}

// methods are in the order in which people look for them.
var methods = []string{"get", "post", "put", "patch", "delete"}

func (d *document) markdown() []byte {
	var b strings.Builder
	b.WriteString("# API\n\nThe daemon answers HTTP on its unix socket; who asks is known from the socket. Its description for programs is at `/openapi.json`; this page is made from it.\n\n    curl --unix-socket /run/carma/carma.sock http://carma/v1/tasks\n\n## Requests\n\n")
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range methods {
			if op, ok := d.Paths[path][method]; ok {
				d.operation(&b, method, path, op)
			}
		}
	}
	b.WriteString("## Objects\n\n")
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		s := d.Components.Schemas[name]
		if len(s.Properties) == 0 {
			continue
		}
		fmt.Fprintf(&b, "### %s\n\n%s\n\n| field | type | |\n|---|---|---|\n", name, s.Description)
		for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
			p := s.Properties[field]
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", field, p.word(), cell(p.Description))
		}
		b.WriteString("\n")
	}
	return []byte(b.String())
}

func (d *document) operation(b *strings.Builder, method, path string, op operation) {
	fmt.Fprintf(b, "### %s %s\n\n%s\n\n", strings.ToUpper(method), path, cmp.Or(op.Description, op.Summary))
	if len(op.Parameters) > 0 {
		b.WriteString("| parameter | in | |\n|---|---|---|\n")
		for _, p := range op.Parameters {
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", p.Name, p.In, cell(cmp.Or(p.Description, p.Schema.Description)))
		}
		b.WriteString("\n")
	}
	for _, c := range op.RequestBody.Content {
		fmt.Fprintf(b, "Body: %s\n\n", c.Schema.word())
	}
	for _, code := range slices.Sorted(maps.Keys(op.Responses)) {
		r := op.Responses[code]
		for _, c := range r.Content {
			if code < "300" {
				fmt.Fprintf(b, "Answer: %s\n\n", c.Schema.word())
			}
		}
	}
	fmt.Fprintf(b, "    %s\n\n", curl(method, path, op))
}

// curl is an example of a request.
func curl(method, path string, op operation) string {
	line := "curl --unix-socket /run/carma/carma.sock"
	if method != "get" {
		line += " -X " + strings.ToUpper(method)
	}
	if len(op.RequestBody.Content) > 0 {
		line += " -H 'Content-Type: application/json' \\\n      -d '" + strings.ReplaceAll(bodies[method+" "+path], "'", `'\''`) + "'"
	}
	path = strings.NewReplacer("{task}", "17", "{suite}", "mixed", "{group}", "sweep", "{helper}", "db", "{id}", "3", "{", "", "}", "").Replace(path)
	return line + " http://carma" + path
}

// word is a type for people, with a link if it is an object of the page.
func (s schema) word() string {
	if name := s.Ref[strings.LastIndex(s.Ref, "/")+1:]; name != "" {
		return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name))
	}
	switch t := s.Type.(type) {
	case []any: // a type, or null
		return (schema{Type: t[0], Items: s.Items, Format: s.Format}).word()
	case string:
		if t == "array" && s.Items != nil {
			return "list of " + s.Items.word()
		}
		if s.Format == "date-time" {
			return "time (RFC 3339)"
		}
		return t
	}
	return "anything"
}

// cell is text in a cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;").Replace(text)
}
