// Package notifyfile reads notify.yaml: the channels of a user
// (~/.config/carma/notify.yaml) or of the administrator (/etc/carma/notify.yaml).
// docs/monitoring.md describes the format.
//
// The file has secrets. No error quotes a value that may be one.
package notifyfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"go.yaml.in/yaml/v3"

	"carma/internal/suggest"
	"carma/runner/api"
)

// MaxSize is the largest size of a file, in bytes.
const MaxSize = 64 << 10

// Error is a fault in a file, with its place.
type Error struct {
	File string
	Line int // 0 for the whole file
	Text string
}

// Error returns file, line and fault in one line.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Text
	}
	return e.File + ":" + strconv.Itoa(e.Line) + ": " + e.Text
}

// Path returns the file of the user who runs this program, or empty if there is no home.
func Path() string {
	dir := os.Getenv("XDG_CONFIG_HOME")
	if home, err := os.UserHomeDir(); err == nil && !filepath.IsAbs(dir) {
		dir = filepath.Join(home, ".config")
	}
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "carma", "notify.yaml")
}

// AdminPath is the administrator's file.
const AdminPath = "/etc/carma/notify.yaml"

// Read reads a file. known is false if there is no file. An error is an *[Error].
func Read(path string, admin bool) (s api.NotifySettings, known bool, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe is refused below; do not block on it
	if errors.Is(err, os.ErrNotExist) {
		return s, false, nil
	}
	if err != nil {
		return s, true, &Error{File: path, Text: errors.Unwrap(err).Error()}
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a file")
	}
	if err == nil && admin {
		err = guarded(path, info)
	}
	var content []byte
	if err == nil {
		content, err = io.ReadAll(io.LimitReader(f, MaxSize+1))
	}
	if err == nil && len(content) > MaxSize {
		err = fmt.Errorf("larger than %d KiB", MaxSize>>10)
	}
	if err != nil {
		return s, true, &Error{File: path, Text: err.Error()}
	}
	s, err = Parse(path, content, admin)
	return s, true, err
}

// guarded refuses an administrator's file that others could change or read: because it
// names programs and contains passwords.
func guarded(path string, info os.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if ok && int(st.Uid) != os.Geteuid() && st.Uid != 0 {
		return fmt.Errorf("it belongs to user %d; write: chown root %s", st.Uid, path)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("others can read or change it, and it has passwords; write: chmod 600 %s", path)
	}
	return nil
}

// Open reports whether others can read a user's file.
func Open(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().Perm()&0o077 != 0
}

// Parse reads the content of a file; name is for its errors, which are *[Error].
func Parse(name string, content []byte, admin bool) (api.NotifySettings, error) {
	p := &parser{file: name}
	var doc yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(content))
	if err := d.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return p.s, &Error{File: name, Text: "it is not YAML: " + place(err)}
	}
	if len(doc.Content) == 0 {
		return p.s, nil
	}
	if err := p.root(doc.Content[0], admin); err != nil {
		return api.NotifySettings{}, err
	}
	if err := p.s.Check(admin); err != nil {
		return api.NotifySettings{}, p.errorf(p.lineOf(err), "%v", err)
	}
	return p.s, nil
}

// place returns the location in an error of the YAML library, without the error's text,
// which may quote a value.
func place(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if at, _, ok := strings.Cut(text, ":"); ok && strings.HasPrefix(at, "line ") {
		return "look at " + at
	}
	return "its structure is broken"
}

type parser struct {
	file  string
	s     api.NotifySettings
	lines []int // lines of the channels
}

func (p *parser) errorf(line int, format string, args ...any) error {
	return &Error{p.file, line, fmt.Sprintf(format, args...)}
}

// lineOf returns the line of the channel that an error is about.
func (p *parser) lineOf(err error) int {
	for i, c := range p.s.Channels {
		if strings.HasPrefix(err.Error(), "channel "+c.Name+":") {
			return p.lines[i]
		}
	}
	return 0
}

// each calls fn for the keys of a mapping.
func (p *parser) each(n *yaml.Node, what string, keys []string, fn func(key string, value *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return p.errorf(n.Line, "%s: it has no keys; write for example %s: ...", what, keys[0])
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if !slices.Contains(keys, key.Value) {
			text := fmt.Sprintf("%s has no key %q", what, key.Value)
			if near := suggest.Near(key.Value, keys); len(near) > 0 {
				text += "; did you mean " + near[0] + "?"
			} else {
				text += "; it has " + strings.Join(keys, ", ")
			}
			return p.errorf(key.Line, "%s", text)
		}
		if seen[key.Value] {
			return p.errorf(key.Line, "%s: %s is there twice", what, key.Value)
		}
		seen[key.Value] = true
		if err := fn(key.Value, value); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) root(n *yaml.Node, admin bool) error {
	keys := []string{"channels", "events"}
	if admin {
		keys = append(keys, "relay", "allow", "defaults")
	}
	return p.each(n, "notify.yaml", keys, func(key string, v *yaml.Node) (err error) {
		switch key {
		case "events":
			p.s.Events, err = p.list(key, v)
		case "allow":
			p.s.Allow, err = p.list(key, v)
		case "defaults":
			p.s.Defaults, err = p.list(key, v)
		case "relay":
			p.s.Relay = &api.NotifyChannel{}
			err = p.channel("relay", v, relayKeys, p.s.Relay)
		case "channels":
			err = p.channels(v)
		}
		return err
	})
}

var (
	channelKeys = []string{"kind", "events", "output", "url", "format", "headers", "to", "server", "tls", "from", "user", "password", "command"}
	relayKeys   = []string{"server", "tls", "from", "user", "password"}
)

func (p *parser) channels(n *yaml.Node) error {
	if n.Tag == "!!null" {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return p.errorf(n.Line, "channels: each has a name of yours; write for example phone: {kind: webhook, url: ...}")
	}
	for i := 0; i < len(n.Content); i += 2 {
		c := api.NotifyChannel{Name: n.Content[i].Value}
		if err := p.channel("channel "+c.Name, n.Content[i+1], channelKeys, &c); err != nil {
			return err
		}
		p.s.Channels, p.lines = append(p.s.Channels, c), append(p.lines, n.Content[i].Line)
	}
	return nil
}

func (p *parser) channel(what string, n *yaml.Node, keys []string, c *api.NotifyChannel) error {
	texts := map[string]*string{
		"kind": &c.Kind, "url": &c.URL, "format": &c.Format, "server": &c.Server, "tls": &c.TLS, "from": &c.From, "user": &c.User, "password": &c.Password, "command": &c.Command,
	}
	return p.each(n, what, keys, func(key string, v *yaml.Node) (err error) {
		switch key {
		case "events":
			c.Events, err = p.list(what+": "+key, v)
		case "to":
			c.To, err = p.list(what+": "+key, v)
		case "output":
			yes := v.Value == "true"
			if c.Output = &yes; v.Tag != "!!bool" {
				err = p.errorf(v.Line, "%s: output is true or false", what)
			}
		case "headers":
			c.Headers = map[string]string{}
			if v.Kind != yaml.MappingNode {
				return p.errorf(v.Line, "%s: headers: write for example Authorization: Bearer ...", what)
			}
			for i := 0; i < len(v.Content); i += 2 {
				if v.Content[i+1].Kind != yaml.ScalarNode {
					return p.errorf(v.Line, "%s: headers: %s is not a text", what, v.Content[i].Value)
				}
				c.Headers[v.Content[i].Value] = v.Content[i+1].Value
			}
		default:
			*texts[key], err = p.text(what+": "+key, v)
		}
		return err
	})
}

func (p *parser) text(what string, n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return "", p.errorf(n.Line, "%s is not a text", what)
	}
	return n.Value, nil
}

// list parses a list, or texts separated by commas.
func (p *parser) list(what string, n *yaml.Node) (list []string, err error) {
	if n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
		for part := range strings.SplitSeq(n.Value, ",") {
			list = append(list, strings.TrimSpace(part))
		}
		return list, nil
	}
	if n.Kind != yaml.SequenceNode {
		return nil, p.errorf(n.Line, "%s is not a list; write for example [a, b]", what)
	}
	for _, c := range n.Content {
		text, err := p.text(what, c)
		if err != nil {
			return nil, err
		}
		list = append(list, text)
	}
	return list, nil
}
