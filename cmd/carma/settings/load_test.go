package settings

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"carma/configs"
	"carma/internal/suggest"
	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/policy"
	"carma/mapper/rules"

	"github.com/spf13/pflag"
)

// hermetic hides the machine's own configuration and returns the path of a test's
// file.
func hermetic(t testing.TB) string {
	for _, e := range os.Environ() {
		if name, value, _ := strings.Cut(e, "="); strings.HasPrefix(name, "CARMA_") {
			t.Setenv(name, value) // restored after the test
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "config.yaml")
	t.Setenv("CARMA_CONFIG", path)
	return path
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestPrecedence(t *testing.T) {
	path := hermetic(t)
	write(t, path, "# a comment\n\npolicy: lug\nmin-free: 5G\nwarm-up: 5s\nspeed: 60\nallowed-mounts: [~, /data]\nidle-first: false\n")
	t.Setenv("CARMA_MIN_FREE", "6G")
	t.Setenv("CARMA_WARM_UP", "6s")
	t.Setenv("CARMA_HEADROOM", "") // empty means not set
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddFlags(flags)
	if err := flags.Parse([]string{"--warm-up=7s", "--idle-first", "--data-dir", "x"}); err != nil {
		t.Fatal(err)
	}
	got, from, err := Load(flags)
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Mapper = mapperDefaults("lug")
	want.Mapper.MinFree, want.Mapper.WarmUp = 6*units.GiB, 7*time.Second
	want.Speed, want.AllowedMounts, want.Mapper.IdleFirst = 60, []string{"~", "/data"}, true
	want.DataDir, _ = filepath.Abs("x")
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	for name, origin := range map[string]string{
		"policy": path + ":3", "min-free": "CARMA_MIN_FREE", "warm-up": "--warm-up", "headroom": "default", "idle-first": "--idle-first",
	} {
		if from[name].String() != origin {
			t.Errorf("%s is from %q, want %q", name, from[name], origin)
		}
	}
	if len(from) != len(keys) {
		t.Errorf("%d origins for %d keys", len(from), len(keys))
	}
}

// TestDefaultsOfPolicy checks that a key that nobody has set has the default of the policy, and
// the policy as its origin.
func TestDefaultsOfPolicy(t *testing.T) {
	for _, policy := range policy.Names() {
		path := hermetic(t)
		write(t, path, "attempts: 7\nsmact-cap: 0.7\npolicy: "+policy+"\n")
		c, from, err := Load(nil)
		if err != nil {
			t.Fatal(err)
		}
		want := mapperDefaults(policy)
		want.Attempts, want.SMACTCap = 7, 0.7
		if !reflect.DeepEqual(c.Mapper, want) {
			t.Errorf("got  %+v\nwant %+v", c.Mapper, want)
		}
		if got := from["warm-up"].String(); got != "default of policy "+policy {
			t.Errorf("warm-up is from %q", got)
		}
		if from["smact-cap"].Where != path+":2" || from["headroom"].String() != "default" {
			t.Errorf("smact-cap is from %q, headroom from %q", from["smact-cap"], from["headroom"])
		}
	}
}

func TestUserFileOverSystemFile(t *testing.T) {
	hermetic(t)
	t.Setenv("CARMA_CONFIG", "")
	t.Setenv("XDG_CONFIG_HOME", "")
	home := t.TempDir()
	t.Setenv("HOME", home)
	mine := filepath.Join(home, ".config", "carma", "config.yaml")
	if got, want := Files(), []string{"/etc/carma/config.yaml", mine}; !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
	write(t, mine, "log-level: debug\ndata-dir: ~/tasks\n")
	c, from, err := Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.LogLevel != "debug" || from["log-level"].Where != mine+":1" || c.DataDir != filepath.Join(home, "tasks") {
		t.Errorf("%v %v", c, from)
	}
	other := filepath.Join(home, "other.yaml")
	write(t, other, "log-level: warn\n")
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags.String("config", "", "")
	if err := flags.Parse([]string{"--config", other}); err != nil {
		t.Fatal(err)
	}
	if c, _, err = Load(flags); err != nil || c.LogLevel != "warn" || c.DataDir == filepath.Join(home, "tasks") {
		t.Errorf("%v %v", c, err)
	}
}

func TestWrongFiles(t *testing.T) {
	for text, want := range map[string]string{
		"polcy: magm":                          `FILE:1: unknown key "polcy"; did you mean policy?`,
		"\n\nmin_free: 5G":                     `FILE:3: unknown key "min_free"; did you mean min-free?`,
		"estimator: horus":                     "FILE:1: estimator is no setting any more: memory is booked by carma's own estimator; take the line out (`carma estimate` compares it with others)",
		"banana: 1":                            "FILE:1: unknown key \"banana\"; `carma config` lists the keys",
		"policy: mgam":                         `FILE:1: policy: unknown policy "mgam"; did you mean magm?`,
		"speed: fast":                          `FILE:1: speed: "fast" is not a number`,
		"speed: 0":                             `FILE:1: speed: 0 is not above 0 and at most 100000`,
		"speed: .nan":                          `FILE:1: speed: NaN is not a number`,
		"speed:":                               `FILE:1: speed: an empty value is not a number`,
		"headroom: 512":                        `FILE:1: headroom: 512 what? write 512M`,
		"warm-up: -1s":                         `FILE:1: warm-up: -1s is negative; write for example 30s, 90m or 2h`,
		"idle-first: maybe":                    `FILE:1: idle-first: "maybe" is neither true nor false`,
		"attempts: 1.5":                        `FILE:1: attempts: 1.5 is not a whole number`,
		"attempts: 0":                          `FILE:1: attempts: is 0; a task is launched at least once`,
		"min-free: lots":                       `FILE:1: min-free: "lots" is not an amount of memory; write for example 512M or 12G`,
		"min-free: {a: 1}":                     `FILE:1: min-free: a map is not an amount of memory; write for example 512M or 12G`,
		"smact-cap: 2":                         `FILE:1: smact-cap: 2 is not between 0 and 1; nearest: 1; 0 is off`,
		"drama-cap: -1":                        `FILE:1: drama-cap: -1 is not between 0 and 1; nearest: 0; 0 is off`,
		"slowdown-cap: 0.5":                    `FILE:1: slowdown-cap: 0.5 is not between 1 and 100; nearest: 1; 0 is policy carma's own cap`,
		"booking: grant":                       `FILE:1: booking: unknown booking "grant"; did you mean grants?`,
		"order: sfj":                           `FILE:1: order: unknown order "sfj"; did you mean sjf?`,
		"recovery: stage":                      `FILE:1: recovery: unknown recovery "stage"; did you mean staged?`,
		"interval: -1s":                        `FILE:1: interval: -1s is negative; write for example 30s, 90m or 2h`,
		"shrink: soon":                         `FILE:1: shrink: "soon" is not a time; write for example 30s, 90m, 2h, 1d or 2:00:00`,
		"margin: -1":                           `FILE:1: margin: "-1" is negative; write for example 512M or 12G`,
		"driver: dokcer":                       `FILE:1: driver: unknown driver "dokcer"; did you mean docker?`,
		"driver: xyz":                          `FILE:1: driver: unknown driver "xyz"; it is one of docker, containerd`,
		"driver: [docker]":                     `FILE:1: driver: a list is not a text`,
		"log-level: verbose":                   `FILE:1: log-level: unknown log level "verbose"; it is one of debug, info, warn, error`,
		"gpus: 4":                              `FILE:1: gpus: 4 is not a text`,
		"gpus: \"sim:\"":                       `FILE:1: gpus: unknown source "sim:"`,
		"gpus: \"nvml:\"":                      `FILE:1: gpus: nvml: "" is neither an index nor a UUID of a GPU; nvidia-smi -L lists them; write for example nvml:0,1`,
		"gpus: \"nvml:0,first\"":               `FILE:1: gpus: nvml: "first" is neither`,
		"gpus: \"nvml:-1\"":                    `FILE:1: gpus: nvml: "-1" is neither`,
		"gpus: nvm":                            `FILE:1: gpus: unknown source "nvm"; it is auto, nvml, nvml:0,1, cluster or sim:SERVER`,
		"activity: median":                     `FILE:1: activity: unknown activity "median"; did you mean mean?`,
		"dcgm-exporter: localhost:9400":        `FILE:1: dcgm-exporter: "localhost:9400" is not the address of a page; write for example http://localhost:9400/metrics`,
		"dcgm-exporter: http:///metrics":       `FILE:1: dcgm-exporter: "http:///metrics" is not the address`,
		"dcgm-exporter: ftp://localhost/m":     `FILE:1: dcgm-exporter: "ftp://localhost/m" is not the address`,
		"gpus: sim:dgx-h10":                    `FILE:1: gpus: unknown server "dgx-h10"; nearest: dgx-h100`,
		"socket: relative.sock":                `FILE:1: socket: "relative.sock" is not an absolute path`,
		"socket: /" + strings.Repeat("x", 107): `FILE:1: socket: "/xxx`,
		"allowed-mounts: [data]":               `FILE:1: allowed-mounts: "data" is neither absolute nor below ~`,
		"allowed-mounts: [[/data]]":            `FILE:1: allowed-mounts: a list in the list is not a text`,
		"allowed-mounts: 7":                    `FILE:1: allowed-mounts: 7 is not a list`,
		"speed: 1\nspeed: 2":                   `FILE:2: speed: is set twice, first in line 1`,
		"- policy":                             "FILE:1: is not a list of `key: value`",
		"a: b: c":                              `FILE: mapping values are not allowed in this context`,
		"policy: *nothing":                     `FILE: unknown anchor 'nothing' referenced`,
		"\x00":                                 `FILE: control characters are not allowed`,
		"policy: {magm: {lug: 1}}":             `FILE:1: policy: a map is not a text`,
		"stop-grace: -5s":                      `FILE:1: stop-grace: -5s is negative; write for example 30s, 90m or 2h`,
		"log-bytes: 1B":                        `FILE:1: log-bytes: 1 bytes is too small; write for example 64M`,
		"sample-every: 1us":                    `FILE:1: sample-every: 1µs is less than 10ms; write for example 1s`,
	} {
		path := hermetic(t)
		write(t, path, text)
		_, _, err := Load(nil)
		var wrong *Error
		if !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), strings.Replace(want, "FILE", path, 1)) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: more than one line: %v", text, err)
		}
	}
}

func TestWrongElsewhere(t *testing.T) {
	path := hermetic(t)
	if _, _, err := Load(nil); err == nil || err.Error() != path+": cannot be read: no such file or directory" {
		t.Errorf("named file is missing: %v", err)
	}
	write(t, path, "")
	t.Setenv("CARMA_SPEED", "fast")
	if _, _, err := Load(nil); err == nil || err.Error() != `CARMA_SPEED: "fast" is not a number` {
		t.Errorf("%v", err)
	}
	t.Setenv("CARMA_SPEED", "")
	t.Setenv("CARMA_POLCY", "magm")
	if _, _, err := Load(nil); err == nil || err.Error() != `CARMA_POLCY: unknown variable; did you mean CARMA_POLICY?` {
		t.Errorf("%v", err)
	}
	t.Setenv("CARMA_POLCY", "")
	if err := os.Unsetenv("CARMA_POLCY"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CARMA_TASK", "17") // a variable of another program
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddFlags(flags, "speed", "policy")
	if flags.Lookup("socket") != nil {
		t.Error("a flag that was not asked for")
	}
	if err := flags.Parse([]string{"--speed=x"}); err == nil {
		t.Error("--speed=x was taken")
	}
	if err := flags.Parse([]string{"--policy=magn"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Load(flags); err == nil || !strings.HasPrefix(err.Error(), `--policy: unknown policy "magn"; did you mean magm?`) {
		t.Errorf("%v", err)
	}
}

// TestKeysCoverConfig checks that every field of Config has a key, and that no two keys share a
// field.
func TestKeysCoverConfig(t *testing.T) {
	var c Config
	at := map[uintptr]string{}
	for _, k := range keys {
		p := reflect.ValueOf(k.at(&c)).Pointer()
		if at[p] != "" {
			t.Errorf("%s and %s share a field", k.name, at[p])
		}
		at[p] = k.name
	}
	var walk func(v reflect.Value, path string)
	walk = func(v reflect.Value, path string) {
		for i := range v.NumField() {
			f, name := v.Field(i), path+v.Type().Field(i).Name
			if f.Kind() == reflect.Struct {
				walk(f, name+".")
			} else if at[f.Addr().Pointer()] == "" {
				t.Errorf("%s has no key", name)
			}
		}
	}
	walk(reflect.ValueOf(&c).Elem(), "")
}

// TestExampleIsComplete checks that the example contains every key once, in order, with its
// default.
func TestExampleIsComplete(t *testing.T) {
	path := hermetic(t)
	if os.Geteuid() != 0 {
		t.Log("socket and data-dir are compared as root's")
	}
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^#([a-z-]+):`).FindAllStringSubmatch(configs.Example, -1) {
		names = append(names, m[1])
	}
	if !slices.Equal(names, Keys()) {
		t.Errorf("the example has %v\nthe keys are    %v", names, Keys())
	}
	write(t, path, configs.Example)
	c, from, err := Load(nil)
	if err != nil || !reflect.DeepEqual(c, Default()) || from["policy"].Kind != FromDefault {
		t.Errorf("as shipped: %v %v", err, c)
	}
	write(t, path, regexp.MustCompile(`(?m)^#([a-z-]+:)`).ReplaceAllString(configs.Example, "$1"))
	c, from, err = Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Socket, want.DataDir = SystemSocket, "/var/lib/carma"
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %v\nwant %v", c, want)
	}
	for _, k := range keys {
		if from[k.name].Kind != FromFile {
			t.Errorf("%s is from %v", k.name, from[k.name])
		}
	}
	for _, line := range strings.Split(configs.Example, "\n") {
		if len(line) > 85 {
			t.Errorf("line is %d wide: %s", len(line), line)
		}
	}
	for _, policy := range policy.Names() {
		if !strings.Contains(configs.Example, policy) {
			t.Errorf("policy %s is not mentioned", policy)
		}
	}
}

// TestSettingsReadBack checks that Load reads a printed value as the same value.
func TestSettingsReadBack(t *testing.T) {
	path := hermetic(t)
	write(t, path, "min-free: 1234567B\nageing: 90m\nwarm-up: 1h\nallowed-mounts: [/a, /b]\n")
	c, from, err := Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range Settings(c, from) {
		k, _ := find(s.Key)
		var fresh Config
		if err := rules.Parse(k.at(&fresh), s.Value); err != nil || !reflect.DeepEqual(k.at(&fresh), k.at(&c)) {
			t.Errorf("%s: %q reads back as %v, %v", s.Key, s.Value, rules.Format(k.at(&fresh)), err)
		}
	}
	for d, want := range map[time.Duration]string{0: "0s", 10 * time.Minute: "10m", time.Hour: "1h", 90 * time.Minute: "1h30m", 61 * time.Second: "1m1s"} {
		if got := rules.FormatDuration(d); got != want {
			t.Errorf("%v is shown as %s", d, got)
		}
	}
}

func TestClientSocket(t *testing.T) {
	c := Config{Socket: "/nonexistent/carma.sock"}
	if got := ClientSocket(c, Origins{"socket": {Kind: FromFlag}}); got != c.Socket {
		t.Errorf("%s", got)
	}
	if got := ClientSocket(c, Origins{"socket": {Kind: FromDefault}}); exists(SystemSocket) != (got == SystemSocket) {
		t.Errorf("%s", got)
	}
}

func TestNearest(t *testing.T) {
	words := Keys()
	for word, want := range map[string]string{
		"polciy": "policy", "sockt": "socket", "data_dir": "data-dir", "loglevel": "log-level", "aging": "ageing",
		"": "", "zzzzzzzz": "", "x": "", strings.Repeat("policy", 50): "",
	} {
		got := ""
		if near := suggest.Near(word, words); len(near) > 0 {
			got = near[0]
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}

// FuzzLoad checks that for any file Load returns a valid configuration, or an error of one line
// that names the file.
func FuzzLoad(f *testing.F) {
	f.Add(configs.Example)
	f.Add(regexp.MustCompile(`(?m)^#([a-z-]+:)`).ReplaceAllString(configs.Example, "$1"))
	f.Add("policy: lug\nspeed: 1e3\nmin-free: 0x10\n")
	f.Add("a: &a [*a]\n")
	f.Add("socket: !!binary aGVsbG8=\n")
	f.Add("? [a]\n: b\n")
	f.Add("<<: {speed: 3}\n")
	f.Add("ageing: 9999999h\n---\nspeed: 2\n")
	path := hermetic(f)
	f.Fuzz(func(t *testing.T, text string) {
		write(t, path, text)
		c, from, err := Load(nil)
		if err != nil {
			if !strings.HasPrefix(err.Error(), path) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if err := mapper.Validate(c.Mapper); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		for _, s := range Settings(c, from) {
			k, _ := find(s.Key)
			var fresh Config
			if err := rules.Parse(k.at(&fresh), s.Value); err != nil {
				t.Errorf("%q: %s %q: %v", text, s.Key, s.Value, err)
			}
		}
	})
}

func TestSources(t *testing.T) {
	for _, source := range []string{"auto", "nvml", "nvml:0", "nvml:0,3", "nvml:GPU-cccfc25d-fc66-0d40-e289-3b1a1f5d7896, 1", "nvml:MIG-b850f46d-d5ea-c752-ddf3-c4453e44d3f7", "sim:dgx-h100"} {
		if err := validSource(source); err != nil {
			t.Errorf("%s: %v", source, err)
		}
	}
	for _, page := range []string{"", "http://localhost:9400/metrics", "https://gpu1.lab:9400/metrics"} {
		if err := validPage(page); err != nil {
			t.Errorf("%s: %v", page, err)
		}
	}
}
