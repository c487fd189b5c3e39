package containers

import (
	"strings"
	"unicode/utf8"
)

// tailReader reads the end of a program's output. It tells the failure that ended
// the program from failures that the program survived.
type tailReader struct {
	facts Facts
	items []item
}

// item is a line of the tail.
type item struct {
	text   string
	kind   kind
	aside  bool // an exception that does not end the program: in a destructor or a thread
	chain  int  // index of the exception that was being handled when this one was raised, or -1
	follow int  // lines of ordinary output after this one
}

type kind uint8

const (
	output kind = iota // anything
	frame              // inside a traceback: source code, not an event
	raised             // the last line of a traceback: the exception
)

// cause is the line that tells why the program ended.
type cause struct {
	text    string
	rule    *rule  // nil: an exception that no rule knows
	context string // the line and some after it
}

// maxAfter is how many lines of ordinary output may follow the cause. After more
// lines the program has evidently gone on.
const maxAfter = 30

// cause finds the first line that a rule matches, among the lines that belong to
// the end. These are not searched:
//
//   - source lines in a traceback; its last line is searched;
//   - lines before an exception of another kind that the program raised later:
//     it survived the earlier failure. Not counted as such: exceptions that are
//     typical consequences in other processes of the task, and exceptions
//     raised while the first one was handled;
//   - lines that more than maxAfter lines of ordinary output follow;
//   - outside of tracebacks, lines that give advice or say that the program
//     goes on.
//
// If none matches, the cause is the program's own last exception, if there is
// one.
func (r *tailReader) cause() (cause, bool) {
	from, last := 0, -1 // last is the index of the program's own last exception, or -1
	for i, it := range r.items {
		if it.kind != raised || it.aside {
			continue
		}
		switch match, _ := ruleFor(it.text, true, r.facts); {
		case match != nil && match.class == ClassProgram:
			from, last = i, -1
		case match != nil || consequence().MatchString(it.text) || r.chainMatches(i):
		default:
			from, last = i+1, i
		}
	}
	for i := from; i < len(r.items); i++ {
		it := r.items[i]
		if it.kind == frame || it.follow > maxAfter {
			continue
		}
		match, at := ruleFor(it.text, it.kind == raised, r.facts)
		if match == nil || it.kind == output && (survived().MatchString(it.text) || advice().MatchString(it.text[:at])) {
			continue
		}
		c := cause{text: it.text, rule: match, context: r.context(i)}
		if match.name == "tensorflow-oom" && onCPU().MatchString(c.context) {
			c.rule = tensorflowHost
		}
		return c, true
	}
	if last >= 0 {
		return cause{text: r.items[last].text}, true
	}
	return cause{}, false
}

var (
	onCPU          = re(`OOM when allocating tensor.*(device:CPU|by allocator (mkl)?cpu)`)
	tensorflowHost = func() *rule {
		for i := range rules {
			if rules[i].name == "tensorflow-host" {
				return &rules[i]
			}
		}
		panic("no rule tensorflow-host")
	}()
)

// chainMatches reports whether an exception was raised while another one was
// handled that a rule matches.
func (r *tailReader) chainMatches(i int) bool {
	for i = r.items[i].chain; i >= 0; i = r.items[i].chain {
		if match, _ := ruleFor(r.items[i].text, true, r.facts); match != nil {
			return true
		}
	}
	return false
}

// context joins a line with some lines after it: messages are wrapped, and
// TensorFlow's take several lines.
func (r *tailReader) context(i int) string {
	var b strings.Builder
	for j, it := range r.items[i:min(i+12, len(r.items))] {
		if j > 0 && (it.kind != output || strings.Contains(it.text, "Tried to allocate")) {
			break
		}
		b.WriteString(strings.TrimSpace(it.text))
		b.WriteByte(' ')
	}
	return b.String()
}

// lane is the state of one process's output. Launchers mark the lines of each
// process and print them interleaved.
type lane struct {
	inside   bool // in a traceback
	strays   int  // lines in the traceback that do not belong to it
	aside    bool
	chained  bool // the next exception follows from the last one
	previous int  // index of the last exception, or -1
}

var (
	ansi   = re(`\x1b\[[0-9;?]*[a-zA-Z]`)
	marked = re(`^(\[(rank)?\d+\]:|\(\w+ pid=\d+(, ip=[\d.]+)?\)|\d+:|\[\d+,\d+\]<std(err|out)>:?) ?`)
	// exception matches a dotted name, then a colon or the line's end.
	exception = re(`^([A-Za-z_]\w*\.)*[A-Z_]\w*(\([\w., ]*\))?(:|$)|^\w+(\.\w+)*\.(error|timeout)(:|$)`)
	// level matches a log line that looks like an exception.
	level   = re(`^(INFO|WARNING|WARN|DEBUG|ERROR|CRITICAL|FATAL|NOTE|Epoch|Step|Loss)\b`)
	asideRe = re(`^(Exception ignored in|Exception in thread|Error in (atexit|sys\.))`)
	chainRe = re(`^(During handling of the above exception|The above exception was the direct cause)`)
	chatter = re(noisePattern)
)

// noisePattern matches lines that frameworks and launchers print around a
// failure. They do not show that the program went on.
const noisePattern = `^(\[?[WEIF]\d{4} |\[[WEIF]\d* |\[[WEIF] |frame #|[|+=\-*│╭╰┃]|wandb: |srun: |slurmstepd: |\[?HAMI-core|` +
	`Exception (raised|ignored|in) |terminate called|Fatal Python error|Aborted|Segmentation fault|Killed|Bus error|` +
	`CUDA kernel errors|For debugging consider|Compile with|Device-side|Hint:|Root Cause|Failures:|Error executing job|` +
	`Set the environment variable|Current thread|Thread 0x|Extension modules|Last error:|nccl\w+Error:|Cuda failure|` +
	`(During handling|The above exception)|<NO_OTHER_FAILURES>|(WARNING|ERROR):torch\.distributed|ray\.exceptions)|` +
	`torch[./]distributed|ProcessGroup(NCCL|Gloo)|NCCL (INFO|WARN)|resource_tracker|UserWarning|FutureWarning|` +
	`\b(tensorflow|xla|external|tsl)/\S+\.cc:\d+`

func newTailReader(tail []string, facts Facts) *tailReader {
	r := &tailReader{facts: facts, items: make([]item, len(tail))}
	lanes := map[string]*lane{}
	for i, text := range tail {
		text = ansi().ReplaceAllString(text, "")
		mark := marked().FindString(text)
		ln := lanes[mark]
		if ln == nil {
			ln = &lane{previous: -1}
			lanes[mark] = ln
		}
		r.items[i] = ln.item(strings.TrimRight(text[len(mark):], " \t\r"), i)
	}
	follow := 0
	for i := len(r.items) - 1; i >= 0; i-- {
		it := &r.items[i]
		it.follow = follow
		if it.kind == output && it.text != "" && !indented(it.text) && !chatter().MatchString(it.text) {
			follow++
		}
	}
	return r
}

// item reads the lane's next line.
func (l *lane) item(text string, i int) item {
	it := item{text: text, chain: -1}
	switch {
	case strings.Contains(text, "Traceback (most recent call last)"):
		it.kind, l.inside, l.strays = frame, true, 0
	case l.inside && (text == "" || indented(text)):
		it.kind = frame
	case l.inside && exception().MatchString(text) && !level().MatchString(text):
		it.kind, it.aside = raised, l.aside
		if l.chained {
			it.chain = l.previous
		}
		l.inside, l.aside, l.chained, l.previous = false, false, false, i
	case l.inside:
		l.strays++
		l.inside = l.strays < maxAfter
	case asideRe().MatchString(text):
		l.aside = true
	case chainRe().MatchString(text):
		l.chained = true
	case text != "" && !indented(text):
		l.aside, l.chained = false, false
	}
	return it
}

// indented reports whether a line begins with white space or with the frame that
// some libraries draw around a traceback.
func indented(text string) bool {
	c, _ := utf8.DecodeRuneInString(text)
	return strings.ContainsRune(" \t│╭╰┃|", c)
}
