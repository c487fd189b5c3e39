package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"

	"carma/internal/suggest"
	"carma/mapper"
	"carma/mapper/rules"
)

// Kind is the kind of a value's origin.
type Kind string

// The kinds, lowest precedence first.
const (
	FromDefault Kind = "default"
	FromFile    Kind = "file"
	FromEnv     Kind = "environment"
	FromFlag    Kind = "flag"
)

// Origin is the origin of a value.
type Origin struct {
	Kind Kind `json:"from"`
	// Where is the file with line, the variable, or the flag. For a default that
	// depends on the policy it is "policy NAME". Otherwise it is empty.
	Where string `json:"where,omitempty"`
}

// String returns the origin in the form of messages, such as "/etc/carma/config.yaml:3".
func (o Origin) String() string {
	switch {
	case o.Where == "":
		return string(o.Kind)
	case o.Kind == FromDefault:
		return "default of " + o.Where
	}
	return o.Where
}

// Origins maps each key to its origin.
type Origins map[string]Origin

// Error reports an invalid setting.
type Error struct {
	Origin Origin
	Key    string // empty if the error is in no single key
	What   string
}

// Error returns the place, the key and the fault.
func (e *Error) Error() string {
	where := e.Origin.String()
	if e.Key == "" || e.Origin.Kind == FromEnv || e.Origin.Kind == FromFlag {
		return where + ": " + e.What
	}
	return where + ": " + e.Key + ": " + e.What
}

// Setting is a key with its value in force, as carma config prints it.
type Setting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	Origin
	Usage string `json:"-"`
	// First is set if the key matters when a server is set up.
	First bool `json:"-"`
}

// Set reports whether somebody has set the value.
func (s *Setting) Set() bool { return s.Kind != FromDefault }

// Settings lists all keys with their values, in the order of the documentation.
func Settings(c Config, from Origins) []Setting {
	out := make([]Setting, len(keys))
	for i, k := range keys {
		out[i] = Setting{k.name, rules.Format(k.at(&c)), from[k.name], strings.ReplaceAll(k.usage, "`", ""), slices.Contains(firstKeys, k.name)}
	}
	return out
}

// Files returns the configuration files that are read if they exist. A later one
// overrides an earlier one. If CARMA_CONFIG is set, it names the only file, which
// must exist.
func Files() []string {
	if only := os.Getenv("CARMA_CONFIG"); only != "" {
		return []string{only}
	}
	files := []string{"/etc/carma/config.yaml"}
	dir := os.Getenv("XDG_CONFIG_HOME")
	if home, err := os.UserHomeDir(); err == nil && !filepath.IsAbs(dir) {
		dir = filepath.Join(home, ".config")
	}
	if dir != "" {
		files = append(files, filepath.Join(dir, "carma", "config.yaml"))
	}
	return files
}

// Load reads the configuration from its files, the environment, and the flags
// that [AddFlags] made. flags may be nil. If it has a set flag "config", that
// file is the only one and must exist. An error is an *[Error].
func Load(flags *pflag.FlagSet) (Config, Origins, error) {
	files, must := Files(), os.Getenv("CARMA_CONFIG") != ""
	if flags != nil {
		if f := flags.Lookup("config"); f != nil && f.Changed {
			files, must = []string{f.Value.String()}, true
		}
	}
	v := viper.New()
	origins := Origins{}
	for _, path := range files {
		if err := mergeFile(v, origins, path, must); err != nil {
			return Config{}, nil, err
		}
	}
	if err := checkEnvironment(); err != nil {
		return Config{}, nil, err
	}
	config := Default()
	for _, k := range keys {
		if err := k.load(v, origins, flags, &config); err != nil {
			return Config{}, nil, err
		}
		if k.name == "policy" { // all keys that depend on the policy come later
			config.Mapper = mapperDefaults(config.Mapper.Policy)
		}
	}
	if err := checkTogether(&config, origins); err != nil {
		return Config{}, nil, err
	}
	return config, origins, nil
}

// load sets one key of config from its origin of highest precedence, and records the
// origin.
func (k key) load(v *viper.Viper, origins Origins, flags *pflag.FlagSet, config *Config) error {
	if _, ok := origins[k.name]; !ok {
		origins[k.name] = Origin{Kind: FromDefault}
	}
	if err := v.BindEnv(k.name, Variable(k.name)); err != nil {
		return err
	}
	if os.Getenv(Variable(k.name)) != "" {
		origins[k.name] = Origin{FromEnv, Variable(k.name)}
	}
	if flags != nil {
		if f := flags.Lookup(k.name); f != nil && f.Changed && isOurs(f) {
			if err := v.BindPFlag(k.name, f); err != nil {
				return err
			}
			origins[k.name] = Origin{FromFlag, "--" + k.name}
		}
	}
	origin := origins[k.name]
	if origin.Kind == FromDefault {
		if k.byPolicy() {
			origins[k.name] = Origin{FromDefault, "policy " + config.Mapper.Policy}
		}
		return nil
	}
	wrong := func(err error) error { return &Error{origin, k.name, err.Error()} }
	p := k.at(config)
	if err := rules.Parse(p, v.Get(k.name)); err != nil {
		return wrong(err)
	}
	if path, ok := p.(*string); ok && (k.name == "socket" || k.name == "data-dir") {
		*path = expandHome(*path)
		if origin.Kind == FromFlag {
			if abs, err := filepath.Abs(*path); err == nil && *path != "" {
				*path = abs
			}
		}
	}
	if k.check != nil {
		if err := k.check(config); err != nil {
			return wrong(err)
		}
	}
	// All earlier keys were valid, so this key is at fault.
	if err := mapper.Validate(config.Mapper); err != nil {
		return wrong(errors.New(strings.TrimPrefix(err.Error(), k.name+" ")))
	}
	return nil
}

// Variable returns the environment variable of a key: CARMA_DATA_DIR for data-dir.
func Variable(name string) string {
	return "CARMA_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// checkEnvironment refuses variables whose names look like misspelt keys. Other
// variables that begin with CARMA_ belong to other programs.
func checkEnvironment() error {
	known := []string{"CARMA_CONFIG", "CARMA_HOST", "CARMA_CA"} // the last two belong to package contexts
	for _, k := range keys {
		known = append(known, Variable(k.name))
	}
	var names []string
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		if strings.HasPrefix(name, "CARMA_") && !slices.Contains(known, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		for _, k := range known {
			if suggest.Distance(name, k) <= 2 {
				return &Error{Origin{FromEnv, name}, "", "unknown variable; did you mean " + k + "?"}
			}
		}
	}
	return nil
}

// mergeFile overrides values of v with the values of a YAML file. must is set if the file
// must exist.
func mergeFile(v *viper.Viper, origins Origins, path string, must bool) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !must {
		return nil
	}
	if err != nil {
		return &Error{Origin{FromFile, path}, "", "cannot be read: " + errors.Unwrap(err).Error()}
	}
	values, lines, err := parse(path, data)
	if err != nil {
		return err
	}
	for name, line := range lines {
		origins[name] = Origin{FromFile, fmt.Sprintf("%s:%d", path, line)}
	}
	return v.MergeConfigMap(values)
}

// parse reads a YAML map of known keys. lines contains the line of each key.
func parse(path string, data []byte) (values map[string]any, lines map[string]int, err error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, nil, yamlError(path, err)
	}
	values, lines = map[string]any{}, map[string]int{}
	if doc.Kind == 0 || len(doc.Content) == 0 || doc.Content[0].Tag == "!!null" { // empty, or comments only
		return values, lines, nil
	}
	root := doc.Content[0]
	at := func(n *yaml.Node) Origin { return Origin{FromFile, fmt.Sprintf("%s:%d", path, n.Line)} }
	if root.Kind != yaml.MappingNode {
		return nil, nil, &Error{at(root), "", "is not a list of `key: value`"}
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		name, value := root.Content[i], root.Content[i+1]
		if was, ok := gone[name.Value]; ok && value.Value == was.value {
			continue
		}
		if _, ok := find(name.Value); !ok {
			return nil, nil, &Error{at(name), "", unknownKey(name.Value)}
		}
		if first, twice := lines[name.Value]; twice {
			return nil, nil, &Error{at(name), name.Value, fmt.Sprintf("is set twice, first in line %d", first)}
		}
		var v any
		if err := value.Decode(&v); err != nil {
			return nil, nil, &Error{at(value), name.Value, strings.TrimPrefix(err.Error(), "yaml: ")}
		}
		if v == nil && value.Value == "~" {
			v = "~" // ~ is the home here, not YAML's null
		}
		values[name.Value], lines[name.Value] = v, name.Line
	}
	return values, lines, nil
}

// gone lists removed settings of earlier versions: the value that now always applies, and
// the replacement of the setting.
var gone = map[string]struct{ value, what string }{
	"estimator": {"carma", "is no setting any more: memory is booked by carma's own estimator; take the line out (`carma estimate` compares it with others)"},
}

func unknownKey(name string) string {
	if was, ok := gone[name]; ok {
		return name + " " + was.what
	}
	if near := suggest.Near(name, Keys()); len(near) > 0 {
		return fmt.Sprintf("unknown key %q; did you mean %s?", name, near[0])
	}
	return fmt.Sprintf("unknown key %q; `carma config` lists the keys", name)
}

// yamlError turns "yaml: line 3: ..." into "file:3: ...".
func yamlError(path string, err error) error {
	what := strings.TrimPrefix(err.Error(), "yaml: ")
	var line int
	if n, _ := fmt.Sscanf(what, "line %d:", &line); n == 1 {
		path = fmt.Sprintf("%s:%d", path, line)
		_, what, _ = strings.Cut(what, ": ")
	}
	return &Error{Origin{FromFile, path}, "", what}
}

func expandHome(path string) string {
	if path != "~" && !strings.HasPrefix(path, "~/") {
		return path
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return path
	}
	return filepath.Join(home, path[1:])
}
