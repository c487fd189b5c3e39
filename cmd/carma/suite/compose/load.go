package compose

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/consts"
	"github.com/compose-spec/compose-go/v2/dotenv"
	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/sirupsen/logrus"
	"go.yaml.in/yaml/v3"

	"carma/internal/lazyregexp"
)

// Load reads a Compose file, and the files of [Options.Over] over it. file is its path,
// for errors. An error in the file is an *[Error].
func Load(ctx context.Context, file string, content []byte, o Options) (*Suite, error) {
	d, env, err := open(file, content, o)
	if err != nil {
		return nil, err
	}
	name, err := d.name(o, env)
	if err != nil {
		return nil, err
	}
	env[consts.ComposeProjectName] = name
	if err := d.interpolate(env); err != nil {
		return nil, err
	}
	if err := d.gather(ctx, o.Folder, env); err != nil {
		return nil, err
	}
	c := &checker{document: d, warnings: d.unset}
	if err := c.first(); err != nil {
		return nil, err
	}
	project, err := d.load(ctx, content, name, env, o)
	if err != nil {
		return nil, err
	}
	active, err := c.active(project)
	if err != nil {
		return nil, err
	}
	c.keys(d.root, "", topKeys)
	t := translator{checker: c, project: project, options: o, env: env}
	s := &Suite{Name: name}
	t.isTask = t.tasks(active)
	for _, service := range active {
		if t.isTask[service.Name] {
			c.service(service, taskKeys)
			t.add(s, service)
		} else {
			c.service(service, helperKeys)
			t.addHelper(s, service)
		}
	}
	t.beside(s)
	if err := cmpErr(t.err, c.err()); err != nil {
		return nil, err
	}
	s.Warnings = c.told()
	return s, nil
}

// Name reads only the project's name from a Compose file.
func Name(file string, content []byte, o Options) (string, error) {
	d, env, err := open(file, content, o)
	if err != nil {
		return "", err
	}
	return d.name(o, env)
}

// open parses a file, merges further files over it, and collects the variables that they
// may use.
func open(file string, content []byte, o Options) (*document, map[string]string, error) {
	d, err := parse(file, content)
	if err != nil {
		return nil, nil, err
	}
	d.root = settled(d.root)
	for _, f := range o.Over {
		if err := d.over(f); err != nil {
			return nil, nil, err
		}
	}
	env, err := variables(o)
	return d, env, err
}

// variables returns the variables that the file may use: the caller's, then the variables
// of .env or of the named files.
func variables(o Options) (map[string]string, error) {
	env := map[string]string{}
	for _, kv := range o.Environ {
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" {
			env[name] = value
		}
	}
	files := o.EnvFiles
	if len(files) == 0 {
		if path := filepath.Join(o.Folder, ".env"); exists(path) {
			files = []string{path}
		}
	}
	for _, path := range files {
		if info, err := os.Stat(path); err != nil {
			return nil, &Error{File: path, Text: reason(err)}
		} else if info.Size() > MaxSize {
			return nil, &Error{File: path, Text: "larger than 1024 KiB, the most a file of variables may have"}
		}
	}
	given, err := dotenv.GetEnvFromFile(env, files)
	if err != nil {
		return nil, &Error{File: strings.Join(files, ", "), Text: oneLine(err.Error())}
	}
	for name, value := range given {
		if _, own := env[name]; !own {
			env[name] = value
		}
	}
	return env, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func reason(err error) string {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}

var validName = lazyregexp.New(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// name returns the project's name: the given one, or the name from the environment, the
// file, or its folder.
func (d *document) name(o Options, env map[string]string) (string, error) {
	line, key, name := 0, "-p", o.Name
	if name == "" {
		key, name = consts.ComposeProjectName, env[consts.ComposeProjectName]
	}
	if name == "" {
		if v, at := d.find("name"); v != nil && v.Kind == yaml.ScalarNode {
			text, _, err := substitute(v.Value, env)
			if err != nil {
				return "", d.errorf(at, "name", "%v", err)
			}
			line, key, name = at, "name", text
		}
	}
	if name == "" {
		key, name = "its folder", loader.NormalizeProjectName(filepath.Base(o.Folder))
	}
	if !validName().MatchString(name) || strings.Trim(name, "0123456789") == "" {
		return "", d.errorf(line, key, "%q cannot be the name of a suite: small letters, digits, '-' and '_', beginning with a letter or digit, at most 64, and no number; give one with -p", name)
	}
	return name, nil
}

// first checks for faults that the loader would report without a line.
func (c *checker) first() error {
	all, line := c.find("services")
	if all == nil || all.Kind != yaml.MappingNode || len(all.Content) == 0 {
		return c.errorf(max(1, line), "services", "no service; write for example services: {train: {image: my/training:1}}")
	}
	if err := c.unknown(c.root, "", topKeys); err != nil {
		return err
	}
	for _, name := range c.services() {
		n, line := c.find("services", name)
		at := "services." + name
		if n.Kind != yaml.MappingNode {
			return c.errorf(line, at, "keys and values are missing; write for example image: my/training:1")
		}
		if err := c.unknown(n, at, serviceKeys); err != nil {
			return err
		}
	}
	return c.depends()
}

// load runs Compose's own loader.
func (d *document) load(ctx context.Context, content []byte, name string, env map[string]string, o Options) (*types.Project, error) {
	logrus.SetOutput(io.Discard) // this package prints these warnings itself, with line numbers
	files := []types.ConfigFile{{Filename: filepath.Join(o.Folder, filepath.Base(d.file)), Content: content}}
	for _, f := range o.Over {
		files = append(files, types.ConfigFile{Filename: f.Path, Content: f.Content})
	}
	project, err := loader.LoadWithContext(ctx, types.ConfigDetails{
		WorkingDir:  o.Folder,
		ConfigFiles: files,
		Environment: maps.Clone(env),
	}, func(l *loader.Options) {
		l.SetProjectName(name, true)
		l.Profiles = o.chosen(env)
		l.ResolvePaths = true
	})
	if err != nil {
		return nil, d.placed(err)
	}
	return project, nil
}

var (
	keyInText     = lazyregexp.New(`(?:services|networks|volumes|configs|secrets)(?:\.[\w-]+)+`)
	serviceInText = lazyregexp.New(`service "([^"]+)"`)
	indexInText   = lazyregexp.New(`services\[([\w.-]+)\]`)
	waitsInText   = lazyregexp.New(`service "([^"]+)" depends on undefined service "?([^" ]+)"?`)
)

// placed adds the line to an error of the loader. It finds the line by names in the
// error's text.
func (d *document) placed(err error) error {
	text := strings.TrimSuffix(oneLine(err.Error()), ": invalid compose project")
	text = indexInText().ReplaceAllString(strings.TrimPrefix(text, "decoding failed due to the following error(s): "), "services.$1")
	if m := waitsInText().FindStringSubmatch(text); m != nil {
		_, line := d.find("services", m[1], "depends_on")
		return d.errorf(line, "services."+m[1]+".depends_on", "%s does not run: it belongs to a profile that is not chosen; use --profile", m[2])
	}
	for _, file := range append([]string{d.file}, d.others...) {
		if _, after, found := strings.Cut(text, file+": "); found {
			text = after
			break
		}
	}
	var path []string
	if key := keyInText().FindString(text); key != "" {
		path = strings.Split(key, ".")
	} else if m := serviceInText().FindStringSubmatch(text); m != nil {
		path = []string{"services", m[1]}
	} else if file := d.envFileIn(text); file != nil {
		path = file
	}
	if m := yamlLine().FindStringSubmatch(text); m[1] != "" {
		return d.broken(errors.New(text))
	}
	_, line := d.find(path...)
	key := strings.Join(path, ".")
	for strings.HasPrefix(text, key) && key != "" {
		text = strings.TrimLeft(text[len(key):], ".[]:' ")
	}
	return d.errorf(line, key, "%s", text)
}

// envFileIn finds the service whose env_file an error is about.
func (d *document) envFileIn(text string) []string {
	for _, name := range d.services() {
		for _, key := range []string{"env_file", "label_file"} {
			v, _ := d.find("services", name, key)
			if slices.ContainsFunc(scalars(v), func(path string) bool {
				return path != "" && strings.Contains(text, filepath.Clean(path))
			}) {
				return []string{"services", name, key}
			}
		}
	}
	return nil
}

// scalars returns all scalar values in a tree.
func scalars(n *yaml.Node) []string {
	if n == nil {
		return nil
	}
	if n.Kind == yaml.ScalarNode {
		return []string{n.Value}
	}
	var all []string
	for _, c := range n.Content {
		all = append(all, scalars(c)...)
	}
	return all
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func cmpErr(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}
