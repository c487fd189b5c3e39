package taskfile

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"carma/internal/lazyregexp"
	"carma/internal/suggest"
	"carma/runner/api"
)

// MaxSize is the largest size of a task file, in bytes.
const MaxSize = 1 << 20

// Error is a fault in a task file, with its place.
type Error struct {
	File string
	Line int    // 0 for the whole file
	Key  string // like tasks.train.mem, or empty if none
	Text string
}

// Error returns file, line, key and fault in one line.
func (e *Error) Error() string {
	where := e.File
	if e.Line > 0 {
		where += ":" + strconv.Itoa(e.Line)
	}
	if e.Key != "" {
		where += ": " + e.Key
	}
	return where + ": " + e.Text
}

// File is a task file. A task comes after the tasks that it waits for.
type File struct {
	Group string // empty if none is given
	Tasks []Task
}

// Task is one entry of a file. It is a submission, with parts that stand for several
// tasks, or that must be read where the file is used.
type Task struct {
	Submit   api.Submit // fields that the file sets directly
	Line     int
	EnvFiles []string // files with more environment
	Volumes  []string // source:target[:ro]; they become mounts
	Array    Array
	Sweep    []Axis

	afterLine   int
	env, labels []pair // in order, to be applied over the defaults
}

type pair struct{ key, value string }

// Read reads a task file; name is used in its errors. An error in the content is an
// *[Error].
func Read(name string, from io.Reader) (*File, error) {
	content, err := io.ReadAll(io.LimitReader(from, MaxSize+1))
	if err != nil {
		return nil, &Error{File: name, Text: err.Error()}
	}
	if len(content) > MaxSize {
		return nil, &Error{File: name, Text: fmt.Sprintf("larger than %d KiB, the most a task file may have", MaxSize>>10)}
	}
	return Parse(name, content)
}

// Parse parses the content of a task file; name is used in its errors, which are
// *[Error].
func Parse(name string, content []byte) (*File, error) {
	p := &parser{file: name}
	root, err := p.document(content)
	if err != nil {
		return nil, err
	}
	f, err := p.root(root)
	if err != nil {
		return nil, err
	}
	for i := range f.Tasks {
		if err := p.complete(f, &f.Tasks[i]); err != nil {
			return nil, err
		}
	}
	if err := p.sort(f); err != nil {
		return nil, err
	}
	f.tie()
	return f, nil
}

// tie combines the tasks of a file into one submission, if there are several.
func (f *File) tie() {
	if len(f.Tasks) == 1 {
		return
	}
	parts := map[string]bool{}
	for i := range f.Tasks {
		s := &f.Tasks[i].Submit
		s.Part, s.Name = s.Name, ""
		parts[s.Part] = true
	}
	for i := range f.Tasks {
		for j, d := range f.Tasks[i].Submit.After {
			if parts[d.Task] {
				f.Tasks[i].Submit.After[j].Part, f.Tasks[i].Submit.After[j].Task = d.Task, ""
			}
		}
	}
}

type parser struct{ file string }

func (p *parser) errorf(line int, key, format string, args ...any) error {
	return &Error{File: p.file, Line: line, Key: key, Text: fmt.Sprintf(format, args...)}
}

var yamlLine = lazyregexp.New(`^(?:yaml: )?(?:line (\d+): )?`)

// document parses the YAML into nodes, which keep their lines.
func (p *parser) document(content []byte) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(content, &doc); err != nil {
		m := yamlLine().FindStringSubmatch(err.Error())
		line, _ := strconv.Atoi(m[1])
		return nil, p.errorf(line, "", "not YAML: %s", err.Error()[len(m[0]):])
	}
	if len(doc.Content) == 0 {
		return nil, p.errorf(1, "", "empty; write for example image: my/training:1")
	}
	return doc.Content[0], nil
}

var rootKeys = []string{"group", "defaults", "tasks"}

// root reads a file of several tasks, or a file whose keys describe one task.
func (p *parser) root(n *yaml.Node) (*File, error) {
	pairs, err := p.pairs(n, "")
	if err != nil {
		return nil, err
	}
	f := &File{}
	var tasks, defaults *yaml.Node
	for _, kv := range pairs {
		switch kv.key.Value {
		case "tasks":
			tasks = kv.value
		case "defaults":
			defaults = kv.value
		}
	}
	if tasks == nil {
		t, err := p.task(n, "", Task{}, append([]string{"group"}, rootKeys[1:]...))
		if err == nil && defaults != nil {
			err = p.errorf(defaults.Line, "defaults", "without tasks; write the keys at the top")
		}
		f.Tasks = []Task{t}
		if err == nil {
			err = p.group(f, pairs)
		}
		return f, err
	}
	for _, kv := range pairs {
		if key := kv.key.Value; key != "group" && key != "tasks" && key != "defaults" {
			if slices.Contains(Keys(), key) || key == "name" {
				return nil, p.errorf(kv.key.Line, key, "a task's key beside tasks; write it below defaults, or into each task")
			}
			return nil, p.errorf(kv.key.Line, key, "unknown key; nearest: %s", suggest.Names(key, rootKeys, 1)[0])
		}
	}
	base := Task{}
	if defaults != nil {
		if base, err = p.task(defaults, "defaults", base, nil); err != nil {
			return nil, err
		}
		if base.Submit.After != nil {
			return nil, p.errorf(base.afterLine, "defaults.after", "every task would wait for itself; write it into each task")
		}
	}
	if err := p.group(f, pairs); err != nil {
		return nil, err
	}
	entries, err := p.pairs(tasks, "tasks")
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return nil, p.errorf(tasks.Line, "tasks", "no task; write for example train: {image: my/training:1}")
	}
	for _, kv := range entries {
		key := "tasks." + kv.key.Value
		if err := p.name(kv.key.Line, key, kv.key.Value); err != nil {
			return nil, err
		}
		t, err := p.task(kv.value, key, base, nil)
		if err != nil {
			return nil, err
		}
		t.Submit.Name = kv.key.Value
		f.Tasks = append(f.Tasks, t)
	}
	return f, nil
}

var validName = lazyregexp.New(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,63}$`)

// name checks the name of a task or group.
func (p *parser) name(line int, key, name string) error {
	if _, err := strconv.Atoi(name); err == nil || !validName().MatchString(name) {
		return p.errorf(line, key, "%q cannot be a name: letters, digits, '_', '.' and '-', beginning with a letter or digit, at most 64, and no number", name)
	}
	return nil
}

func (p *parser) group(f *File, pairs []node) error {
	for _, kv := range pairs {
		if kv.key.Value != "group" {
			continue
		}
		if kv.value.Kind != yaml.ScalarNode {
			return p.errorf(kv.value.Line, "group", "not a name")
		}
		f.Group = kv.value.Value
		return p.name(kv.value.Line, "group", f.Group)
	}
	return nil
}

type node struct{ key, value *yaml.Node }

// pairs returns the keys and values of a mapping.
func (p *parser) pairs(n *yaml.Node, key string) ([]node, error) {
	if n.Kind == yaml.AliasNode {
		return nil, p.errorf(n.Line, key, "anchors and aliases are not part of the format; use defaults")
	}
	if n.Kind != yaml.MappingNode {
		return nil, p.errorf(n.Line, key, "keys and values are missing; write for example image: my/training:1")
	}
	var all []node
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		at := join(key, k.Value)
		switch {
		case k.Kind != yaml.ScalarNode:
			return nil, p.errorf(k.Line, key, "a key that is not a word")
		case v.Kind == yaml.AliasNode || v.Anchor != "" || k.Tag == "!!merge":
			return nil, p.errorf(k.Line, at, "anchors and aliases are not part of the format; use defaults")
		case seen[k.Value]:
			return nil, p.errorf(k.Line, at, "a second time")
		}
		seen[k.Value] = true
		all = append(all, node{k, v})
	}
	return all, nil
}

func join(key, below string) string {
	if key == "" {
		return below
	}
	return key + "." + below
}

// wrong adds the place to an error about a value.
func (p *parser) wrong(n *yaml.Node, key string, err error) error {
	var placed *Error
	if errors.As(err, &placed) {
		return err
	}
	return p.errorf(n.Line, key, "%v", err)
}
