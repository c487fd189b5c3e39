package containers

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carma/containers/endtext"
)

// The samples in testdata/programs are ends of the output of about 90 programs, quoted from
// public threads (source=OWNER/REPO#N) or from the program's source. Positive samples ended for
// the reason of their class. Negative samples mention exhausted memory and ended for another
// reason.

// judgedWrong returns the samples that cannot be classified correctly from the text alone, with
// the reason.
func judgedWrong(t *testing.T) map[string]string {
	t.Helper()
	b, err := os.ReadFile("testdata/programs-wrong.txt")
	if err != nil {
		t.Fatal(err)
	}
	wrong := map[string]string{}
	for l := range strings.Lines(string(b)) {
		if name, why, ok := strings.Cut(strings.TrimSpace(l), ": "); ok && !strings.HasPrefix(l, "#") {
			wrong[name] = why
		}
	}
	return wrong
}

func programs(t *testing.T) map[string]sample {
	t.Helper()
	paths, err := filepath.Glob("testdata/programs/*.txt")
	if err != nil || len(paths) < 300 {
		t.Fatalf("%d samples, %v", len(paths), err)
	}
	all := map[string]sample{}
	for _, p := range paths {
		all[strings.TrimSuffix(filepath.Base(p), ".txt")] = readSample(t, p)
	}
	return all
}

// right reports whether a verdict is correct for a sample. If the text only suggests exhausted
// memory, both one relaunch and none are correct.
func (s *sample) right(v Verdict) bool {
	return v.Class == s.class || s.class == ClassSuspectedOOM && v.Class == ClassProgram
}

// TestPrograms: each sample has its class, except the samples that are listed as wrong.
func TestPrograms(t *testing.T) {
	wrong := judgedWrong(t)
	for name, s := range programs(t) {
		v := Classify(s.exit, s.lines, s.facts)
		switch why, listed := wrong[name]; {
		case s.right(v) && listed:
			t.Errorf("%s is right now: take it off testdata/programs-wrong.txt (%s)", name, why)
		case !s.right(v) && !listed:
			t.Errorf("%s: %s by %q, want %s\n\tevidence: %s", name, v.Class, v.Rule, s.class, v.Evidence)
		}
		delete(wrong, name)
	}
	for name := range wrong {
		t.Errorf("testdata/programs-wrong.txt lists %s, which is no sample", name)
	}
}

// TestCollected: a collector of logs that marks each line changes no class.
func TestCollected(t *testing.T) {
	marks := []string{"2026-11-03T10:00:00.123456789Z ", "2026-11-03T10:00:00.1Z stderr F ", "Nov 03 10:00:00 ", "Nov  3 10:00:00 node7 python[412]: "}
	all := programs(t)
	for i, name := range slices.Sorted(maps.Keys(all)) {
		s, mark := all[name], marks[i%len(marks)]
		want := Classify(s.exit, s.lines, s.facts)
		var marked []string
		for _, line := range s.lines {
			marked = append(marked, mark+line)
		}
		if got := Classify(s.exit, marked, s.facts); got.Class != want.Class {
			t.Errorf("%s: %s, with %q before each line %s\n\tevidence: %s", name, want.Class, mark, got.Class, got.Evidence)
		}
	}
}

// measurement returns NVML's figures of a run that ended as a sample says: at its grant if
// GPU memory ran out, else far below it.
func (s *sample) measurement() GPUMemory {
	if s.class == ClassGPUOOM || s.class == ClassSuspectedOOM {
		return GPUMemory{Readings: 60, Seen: true, AtError: true, Peak: 7800 << 20, Grant: 8 << 30}
	}
	return GPUMemory{Readings: 60, Seen: true, AtError: true, Peak: 2 << 30, Grant: 8 << 30}
}

// TestConfusion compares the table in docs/endings.md with the results for the samples;
// UPDATE=1 writes it.
func TestConfusion(t *testing.T) {
	all := programs(t)
	for name, s := range samples(t) {
		if strings.HasPrefix(name, "case-") && len(s.facts.OOMTexts) == 0 {
			all[name] = s
		}
	}
	count := map[Class]map[string]int{}
	for _, s := range all {
		if count[s.class] == nil {
			count[s.class] = map[string]int{}
		}
		row := count[s.class]
		row["samples"]++
		text := Classify(s.exit, s.lines, s.facts)
		s.facts.Memory = s.measurement()
		measured := Classify(s.exit, s.lines, s.facts)
		for column, v := range map[string]Verdict{"text": text, "measured": measured} {
			switch v.Class {
			case s.class:
				row[column+" right"]++
			case ClassGPUOOM:
				row[column+" gpu-oom"]++
			case ClassSuspectedOOM:
				row[column+" suspected"]++
			default:
				row[column+" other"]++
			}
		}
	}
	var b strings.Builder
	b.WriteString("| ended by | samples | text alone: right | gpu-oom | suspected | another | with memory measured: right | gpu-oom | suspected | another |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for _, class := range slices.Sorted(maps.Keys(count)) {
		c := count[class]
		fmt.Fprintf(&b, "| `%s` | %d | %d | %d | %d | %d | %d | %d | %d | %d |\n", class, c["samples"],
			c["text right"], c["text gpu-oom"], c["text suspected"], c["text other"],
			c["measured right"], c["measured gpu-oom"], c["measured suspected"], c["measured other"])
	}
	inDocs(t, "confusion", b.String())
}

// inDocs compares a part of docs/endings.md between two marks with the wanted text.
func inDocs(t *testing.T, part, want string) {
	t.Helper()
	const path = "../docs/endings.md"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+part+" -->\n", "<!-- end of "+part+" -->"
	before, rest, ok := strings.Cut(string(b), begin)
	is, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no part %s", path, part)
	}
	if is == want {
		return
	}
	if os.Getenv("UPDATE") == "" {
		t.Errorf("%s, part %s: UPDATE=1 go test ./containers writes it; it should be\n%s", path, part, want)
		return
	}
	if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestTextsInDocs compares the list of rules in docs/endings.md with the table.
func TestTextsInDocs(t *testing.T) {
	var b strings.Builder
	b.WriteString("| rule | of | says | strength | for example |\n|---|---|---|---|---|\n")
	for _, r := range endtext.Rules() {
		if r.Yes != "" {
			fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s | `%s` |\n", r.Name, r.Framework, r.Says, r.Strength, strings.NewReplacer("|", `\|`, "`", "'").Replace(r.Yes))
		}
	}
	inDocs(t, "texts", b.String())
}
