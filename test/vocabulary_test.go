package test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"go.yaml.in/yaml/v3"
)

var writeVocabulary = flag.Bool("write-vocabulary", false, "write docs/glossary.md and test/vocabulary-left.yaml")

// A concept is an entry of docs/vocabulary.yaml.
type concept struct {
	Term, From, Means, Shown, Formats string
	Replaces                          []string
}

// leftovers counts the replaced words and comment patterns that the code still has.
type leftovers struct {
	// Words counts, for each replaced word, the different names of a package that have it.
	Words map[string]int
	// Comments counts the matches of each pattern in comments.
	Comments map[string]int
}

const (
	vocabularyFile = "../docs/vocabulary.yaml"
	glossaryFile   = "../docs/glossary.md"
	leftoversFile  = "vocabulary-left.yaml"
)

// commentPatterns are expressions that comments should not use, each with what to write.
var commentPatterns = []struct{ name, pattern, write string }{
	{"definition by a relative clause", `(?m)^\w+ (?:is|are) (?:what|who|how|whom|where|why|when|up to how)\b`, `"x is the ..." or "x counts ..."`},
	{"fragment after a semicolon", `; (?:0|nil|empty|else|false|none): `, `", or 0 if ..."`},
	{"is told", `\b(?:is|are|was|be) told\b`, "declares, sends, logs or reports"},
	{"follows that", `\bfollows that\b`, `"records that"`},
	{"notes that", `\bnotes (?:that|what|which)\b`, `"records"`},
	{"anew", `\banew\b`, `"again"`},
	{"by itself", `\bby itself\b`, `"on its own", or nothing`},
	{"those who", `\bthose (?:of|that|who|which|with)\b|\bthat (?:of|in|on|which)\b`, "the noun again"},
	{"for ever", `\bfor ever\b`, `"indefinitely"`},
	{"stands still", `\bstands? still\b`, `"is suspended"`},
	{"makes way", `\bmakes? way\b`, `"is preempted"`},
}

func readVocabulary(t *testing.T) []concept {
	t.Helper()
	b, err := os.ReadFile(vocabularyFile)
	if err != nil {
		t.Fatal(err)
	}
	var all []concept
	d := yaml.NewDecoder(strings.NewReader(string(b)))
	d.KnownFields(true)
	if err := d.Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestVocabulary splits the names that the code declares, and its file names, into words
// and compares them with the vocabulary. The numbers in vocabulary-left.yaml may only fall.
func TestVocabulary(t *testing.T) {
	terms := map[string]string{} // by replaced word
	for _, c := range readVocabulary(t) {
		for _, w := range c.Replaces {
			if terms[w] != "" {
				t.Errorf("docs/vocabulary.yaml: %q is replaced by %s and by %s", w, terms[w], c.Term)
			}
			terms[w] = c.Term
		}
	}
	names, comments := namesAndComments(t)
	if len(names) < 20000 || len(comments) < 10000 {
		t.Fatalf("only %d names and %d comments were found", len(names), len(comments))
	}
	left, where := count(terms, names, comments)
	if *writeVocabulary {
		b, err := yaml.Marshal(left)
		if err == nil {
			err = os.WriteFile(leftoversFile, b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var kept leftovers
	b, err := os.ReadFile(leftoversFile)
	if err == nil {
		err = yaml.Unmarshal(b, &kept)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range compareLeftovers(left, kept, func(w string) string { return terms[w] }, where) {
		t.Error(f)
	}
}

// compareLeftovers reports each number that rose, and each that fell and is not written
// down yet.
func compareLeftovers(left, kept leftovers, term func(string) string, where map[string][]string) []string {
	var faults []string
	check := func(now, before map[string]int, write func(string) string) {
		for _, w := range slices.Sorted(maps.Keys(now)) {
			if now[w] > before[w] {
				faults = append(faults, fmt.Sprintf("%q: %d, before %d; write %s. They are:\n\t%s", w, now[w], before[w], write(w), strings.Join(where[w], "\n\t")))
			}
		}
		for _, w := range slices.Sorted(maps.Keys(before)) {
			if now[w] < before[w] {
				faults = append(faults, fmt.Sprintf("%q: %d, before %d; keep the progress with go test ./test -run TestVocabulary -write-vocabulary", w, now[w], before[w]))
			}
		}
	}
	check(left.Words, kept.Words, term)
	check(left.Comments, kept.Comments, func(name string) string {
		for _, p := range commentPatterns {
			if p.name == name {
				return p.write
			}
		}
		return "another expression"
	})
	return faults
}

// count finds the replaced words in names and the patterns in comments. It returns also
// where each was found.
func count(terms map[string]string, names, comments map[string]bool) (left leftovers, where map[string][]string) {
	left, where = leftovers{map[string]int{}, map[string]int{}}, map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		words := splitName(name[strings.LastIndexByte(name, ' ')+1:])
		for w := range terms {
			if hasWords(words, strings.Fields(w)) {
				left.Words[w]++
				where[w] = append(where[w], name)
			}
		}
	}
	for _, p := range commentPatterns {
		re := regexp.MustCompile(p.pattern)
		for _, c := range slices.Sorted(maps.Keys(comments)) {
			if n := len(re.FindAllString(c[strings.IndexByte(c, '\n')+1:], -1)); n > 0 {
				left.Comments[p.name] += n
				where[p.name] = append(where[p.name], c[:strings.IndexByte(c, '\n')])
			}
		}
	}
	return left, where
}

// namesAndComments returns the declared names of all Go files, as "package name", and
// their file names, as "package file.go"; and the comments, after a line that says where.
func namesAndComments(t *testing.T) (names, comments map[string]bool) {
	t.Helper()
	names, comments = map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != ".." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin" || d.Name() == "node_modules"):
			return filepath.SkipDir // nothing of ours
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		src, err := os.ReadFile(path)
		if err == nil {
			addNames(t, strings.TrimPrefix(path, "../"), string(src), names, comments)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names, comments
}

func addNames(t *testing.T, path, src string, names, comments map[string]bool) {
	t.Helper()
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(path)
	add := func(ids ...*ast.Ident) {
		for _, id := range ids {
			if id != nil {
				names[dir+" "+id.Name] = true
			}
		}
	}
	names[dir+" "+strings.TrimSuffix(filepath.Base(path), ".go")] = true
	names[dir+" "+f.Name.Name] = true
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			add(n.Name)
		case *ast.TypeSpec:
			add(n.Name)
		case *ast.ValueSpec:
			add(n.Names...)
		case *ast.Field:
			add(n.Names...)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, x := range n.Lhs {
					id, _ := x.(*ast.Ident)
					add(id)
				}
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				key, _ := n.Key.(*ast.Ident)
				value, _ := n.Value.(*ast.Ident)
				add(key, value)
			}
		}
		return true
	})
	for _, g := range f.Comments {
		comments[fmt.Sprintf("%s:%d\n%s", path, files.Position(g.Pos()).Line, g.Text())] = true
	}
}

// splitName splits a name at capital letters, underscores and digits, into lower-case
// words.
func splitName(name string) []string {
	var words []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			words, word = append(words, strings.ToLower(string(word))), nil
		}
	}
	runes := []rune(name)
	for i, r := range runes {
		if !unicode.IsLetter(r) {
			end()
			continue
		}
		if unicode.IsUpper(r) && i > 0 && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			end()
		}
		word = append(word, r)
	}
	end()
	return words
}

// hasWords reports whether words has seq in a row.
func hasWords(words, seq []string) bool {
	for i := 0; i+len(seq) <= len(words); i++ {
		if slices.Equal(words[i:i+len(seq)], seq) {
			return true
		}
	}
	return false
}

// TestVocabularyCanFail shows that each kind of name and pattern is found, and that a
// number can neither rise nor fall unseen.
func TestVocabularyCanFail(t *testing.T) {
	terms := map[string]string{"make way": "preempt", "sick": "circuit breaker"}
	for _, row := range []struct{ path, src, want string }{
		{"a/b.go", "package b; func makeWay() {}", "make way"},
		{"a/b.go", "package b; type HTTPSick struct{}", "sick"},
		{"a/b.go", "package b; var x struct{ isSick bool }", "sick"},
		{"a/b.go", "package b; func f(sick int) {}", "sick"},
		{"a/b.go", "package b; func f() { sick := 1; _ = sick }", "sick"},
		{"a/b.go", "package b; func f() { for sick := range 3 { _ = sick } }", "sick"},
		{"a/sick_test.go", "package b", "sick"},
		{"a/b.go", "package b; func way() { seasick() }", ""},
		{"a/b.go", "package b\n\n// f is what is asked.\nfunc f() {}", "definition by a relative clause"},
		{"a/b.go", "package b\n\n// f returns a number; 0: none.\nfunc f() {}", "fragment after a semicolon"},
	} {
		names, comments := map[string]bool{}, map[string]bool{}
		addNames(t, row.path, row.src, names, comments)
		left, where := count(terms, names, comments)
		if got := strings.Join(slices.Concat(slices.Sorted(maps.Keys(left.Words)), slices.Sorted(maps.Keys(left.Comments))), ","); got != row.want {
			t.Errorf("%s: found %q, want %q", row.src, got, row.want)
		}
		none := leftovers{}
		term := func(w string) string { return terms[w] }
		if got := len(compareLeftovers(left, none, term, where)); (got > 0) != (row.want != "") {
			t.Errorf("%s: %d faults when it is new", row.src, got)
		}
		if got := len(compareLeftovers(none, left, term, where)); (got > 0) != (row.want != "") {
			t.Errorf("%s: %d faults when it is gone", row.src, got)
		}
	}
}

// TestGlossary compares docs/glossary.md with the vocabulary it is generated from.
func TestGlossary(t *testing.T) {
	all := readVocabulary(t)
	if !slices.IsSortedFunc(all, func(a, b concept) int { return strings.Compare(strings.ToLower(a.Term), strings.ToLower(b.Term)) }) {
		t.Error("docs/vocabulary.yaml: the terms are not in alphabetical order")
	}
	var b strings.Builder
	b.WriteString("# Glossary\n\n<!-- Generated from vocabulary.yaml by go test ./test -run TestGlossary -write-vocabulary. -->\n\n" +
		"One term for one concept, in code, logs, commands, the web page and docs. The third column says who defines the term; the last has names in the journal, API, labels and settings that stay, because older and newer programs read them. Words that names may no longer use are in [vocabulary.yaml](vocabulary.yaml). Words of others stay theirs: *reserved* and *release* in `estimator` and `images` are PyTorch's, *reserved* in `runner/gpu/nvml` is NVML's.\n\n" +
		"| term | means | from | in formats |\n|---|---|---|---|\n")
	for _, c := range all {
		if c.Term == "" || c.From == "" || c.Means == "" {
			t.Errorf("docs/vocabulary.yaml: %q needs a term, from and means", c.Term)
		}
		means := c.Means
		if c.Shown != "" {
			means += fmt.Sprintf(" (shown as %q)", c.Shown)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.Term, means, c.From, c.Formats)
	}
	if *writeVocabulary {
		if err := os.WriteFile(glossaryFile, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(glossaryFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != b.String() {
		t.Error("docs/glossary.md is not what docs/vocabulary.yaml says: go test ./test -run TestGlossary -write-vocabulary")
	}
}
