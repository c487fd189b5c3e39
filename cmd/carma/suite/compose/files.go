package compose

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/compose-spec/compose-go/v2/dotenv"
	"go.yaml.in/yaml/v3"
)

const (
	// perFile is larger than the number of lines of any file. Lines of the n-th other file
	// count from n*perFile, so that a line number identifies the file.
	perFile = 10 * MaxSize
	// maxFiles is the largest number of other files that a suite may include or extend.
	maxFiles = 32
	// baseKey begins a key in the root. Below it are services of another file that services
	// of this file extend.
	baseKey = "\x00"
)

// place returns the file and the line that a number stands for.
func (d *document) place(line int) (file string, at int) {
	if n := line / perFile; n > 0 && n <= len(d.others) {
		return d.others[n-1], line % perFile
	}
	return d.file, line
}

// over merges another file over the document.
func (d *document) over(f File) error {
	if len(d.others) == maxFiles {
		return &Error{File: f.Path, Text: fmt.Sprintf("more than %d files", maxFiles)}
	}
	one, err := parse(f.Path, f.Content)
	if err != nil {
		return err
	}
	d.others = append(d.others, f.Path)
	shift(one.root, len(d.others)*perFile)
	d.root = merge(d.root, one.root, nil)
	return nil
}

// gather reads the files that a suite includes or extends. The services, networks,
// volumes, configs and secrets of included files join the root's.
func (d *document) gather(ctx context.Context, folder string, env map[string]string) error {
	g := gatherer{document: d, env: env, known: map[string]*yaml.Node{}}
	if err := g.include(ctx, d.root, folder, 0); err != nil {
		return err
	}
	return g.extend(ctx, d.root, folder)
}

type gatherer struct {
	*document
	env   map[string]string
	known map[string]*yaml.Node // by path
}

// read parses another file, which the document names at line and key.
func (g *gatherer) read(line int, key, path string) (*yaml.Node, error) {
	if n := g.known[path]; n != nil {
		return n, nil
	}
	if len(g.others) == maxFiles {
		return nil, g.errorf(line, key, "more than %d files", maxFiles)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, g.errorf(line, key, "%s: %s", path, reason(err))
	}
	defer f.Close()
	content, err := Read(path, f)
	if err != nil {
		return nil, err
	}
	one, err := parse(path, content)
	if err != nil {
		return nil, err
	}
	if err := one.interpolate(g.env); err != nil {
		return nil, err
	}
	g.unset = append(g.unset, one.unset...)
	g.others = append(g.others, path)
	shift(one.root, len(g.others)*perFile)
	g.known[path] = one.root
	return one.root, nil
}

func shift(n *yaml.Node, by int) {
	n.Line += by
	for _, c := range n.Content {
		shift(c, by)
	}
}

// include adds the included files of a root. Relative paths start at folder.
func (g *gatherer) include(ctx context.Context, root *yaml.Node, folder string, depth int) error {
	_, list := get(root, "include")
	if list == nil || list.Kind != yaml.SequenceNode {
		return nil // the loader reports the fault
	}
	for _, item := range list.Content {
		if depth > maxFiles {
			return g.errorf(item.Line, "include", "files that include each other")
		}
		other, below, err := g.included(item, folder)
		if err != nil {
			return err
		}
		if other == nil {
			continue // the loader reports the fault
		}
		if err := g.include(ctx, other, below, depth+1); err != nil {
			return err
		}
		if err := g.extend(ctx, other, below); err != nil {
			return err
		}
		for _, key := range []string{"services", "networks", "volumes", "configs", "secrets"} {
			g.join(key, other)
		}
	}
	return nil
}

// included reads an entry of include: a file, or several files that are merged. Their
// paths are relative to the returned folder below.
func (g *gatherer) included(item *yaml.Node, folder string) (other *yaml.Node, below string, err error) {
	paths := item
	if _, v := get(item, "path"); v != nil {
		paths = v
	}
	outer := g.env
	defer func() { g.env = outer }()
	for i, name := range scalars(paths) {
		path := inFolder(folder, name)
		if i == 0 {
			below = filepath.Dir(path)
			if _, v := get(item, "project_directory"); v != nil && v.Value != "" {
				below = inFolder(folder, v.Value)
			}
			if g.env, err = within(outer, item, folder, below); err != nil {
				return nil, "", g.errorf(item.Line, "include.env_file", "%v", err)
			}
		}
		one, err := g.read(item.Line, "include", path)
		if err != nil {
			return nil, "", err
		}
		if other == nil {
			other = settled(one)
		} else {
			other = merge(other, one, nil)
		}
	}
	return other, below, nil
}

// within returns the variables of an included file: the outer ones, then the variables of
// its env_file, or of .env in its folder.
func within(outer map[string]string, item *yaml.Node, folder, below string) (map[string]string, error) {
	var files []string
	if _, v := get(item, "env_file"); v != nil {
		for _, name := range scalars(v) {
			if name != os.DevNull {
				files = append(files, inFolder(folder, name))
			}
		}
	} else if path := filepath.Join(below, ".env"); exists(path) {
		files = append(files, path)
	}
	own, err := dotenv.GetEnvFromFile(outer, files)
	if err != nil {
		return nil, errors.New(oneLine(err.Error()))
	}
	env := maps.Clone(own)
	maps.Copy(env, outer)
	return env, nil
}

// join adds the content of another file below a key, except entries that the root already
// has.
func (g *gatherer) join(key string, other *yaml.Node) {
	_, from := get(other, key)
	if from == nil || from.Kind != yaml.MappingNode {
		return
	}
	_, to := get(g.root, key)
	if to == nil {
		to = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: from.Line}
		g.root.Content = append(g.root.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key, Line: from.Line}, to)
	}
	if to == from {
		return
	}
	for i := 0; i+1 < len(from.Content); i += 2 {
		if _, has := get(to, from.Content[i].Value); has == nil {
			to.Content = append(to.Content, from.Content[i], from.Content[i+1])
		}
	}
}

// extend reads the files with services that services of a root extend.
func (g *gatherer) extend(ctx context.Context, root *yaml.Node, folder string) error {
	_, services := get(root, "services")
	if services == nil || services.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(services.Content); i += 2 {
		_, extends := get(services.Content[i+1], "extends")
		k, file := get(extends, "file")
		if file == nil || file.Value == "" {
			continue
		}
		path := inFolder(folder, file.Value)
		at := "services." + services.Content[i].Value + ".extends.file"
		other, err := g.read(k.Line, at, path)
		if err != nil {
			return err
		}
		file.Value = path
		if _, has := get(g.root, baseKey+path); has != nil {
			continue
		}
		other = settled(other)
		g.root.Content = append(g.root.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: baseKey + path, Line: k.Line}, other)
		if err := g.extend(ctx, other, filepath.Dir(path)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func inFolder(folder, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(folder, name)
}

// lineage returns the path of a service, then the paths of the services that it extends.
func (c *checker) lineage(name string) [][]string {
	all := [][]string{{"services", name}}
	for {
		last := all[len(all)-1]
		v, _ := c.find(append(slices.Clone(last), "extends")...)
		if v == nil {
			return all
		}
		root := last[:len(last)-2]
		_, file := get(v, "file")
		if _, of := get(v, "service"); of != nil {
			v = of
		}
		if file != nil && file.Value != "" {
			root = []string{baseKey + file.Value}
		}
		next := append(slices.Clone(root), "services", v.Value)
		if v.Value == "" || slices.ContainsFunc(all, func(p []string) bool { return slices.Equal(p, next) }) {
			return all
		}
		all = append(all, next)
	}
}

// placedIn adds the line's file to an error of another reader.
func (d *document) placedIn(err error) error {
	var wrong *Error
	if errors.As(err, &wrong) {
		wrong.File, wrong.Line = d.place(wrong.Line)
	}
	return err
}

// keyText formats a path for messages.
func keyText(path []string) string {
	text := ""
	for _, p := range path {
		if len(p) > 0 && p[0] == baseKey[0] {
			continue
		}
		text = join(text, p)
	}
	return text
}
