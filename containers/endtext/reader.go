package endtext

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Options are facts about a run that decide how its output is read.
type Options struct {
	// Origins contains the sources of the last lines. The sources of earlier lines are
	// unknown.
	Origins []Origin
	// OOMTexts lists the program's own texts that mean that GPU memory ran out.
	OOMTexts []string
	// MostMemory is the memory of the largest GPU in bytes, or 0 if not known. A
	// request above it is a fault of the program.
	MostMemory int64
}

// Origin is the source of a line.
type Origin struct {
	// Age is the time between the line and the end, or negative if not known.
	Age time.Duration
	// Stream is the number of its stream, or 0 if not known.
	Stream int
}

// Read returns the claim of the last lines of an output about the end.
//
// The first claim of the highest strength counts, because later ones are often
// consequences. Source lines of a traceback are not searched. A claim is weak if the
// program handled the failure: another independent exception or ordinary work came after
// it.
func Read(tail []string, opt Options) Reading {
	r := newReader(tail, opt)
	reading := Reading{Own: complained(tail)}
	for i := range r.items {
		reading.CUDA = reading.CUDA || cudaError().MatchString(r.items[i].text)
		reading.Killed = reading.Killed || killedRank().MatchString(r.items[i].text)
	}
	from, last := r.begin()
	for i := range r.items {
		c := r.claim(i)
		if c == nil {
			continue
		}
		if i < from || c.Strength > Weak && r.wentOn(i) {
			c.Strength = Weak
		}
		switch {
		case c.Strength == Weak && reading.Weak == nil:
			reading.Weak = c
		case c.Strength > Weak && (reading.Cause == nil || c.Strength > reading.Cause.Strength):
			reading.Cause = c
		}
	}
	if reading.Cause == nil && last >= 0 {
		reading.Own = short(r.items[last].text)
	}
	return reading
}

// reader contains the lines of a tail.
type reader struct {
	opt   Options
	items []item
	final int // index of the last line with a text, or -1
}

// item is a line of the tail.
type item struct {
	text string // without colours and the prefix of its process
	msg  string // without a logger's prefix
	sev  severity
	kind kind
	lane string // prefix of its process
	// handler is set for an exception in a destructor, a thread or an exit handler, which
	// does not end the program.
	handler bool
	chain   int // index of the exception that was being handled when this one was raised, or -1
	opened  int // index of the line that began its traceback, or -1
	origin  Origin
}

type kind uint8

const (
	output kind = iota // any other output
	frame              // inside a traceback: source code, no event
	raised             // the last line of a traceback: the exception
)

// begin returns the first line that belongs to the end, and the index of the program's
// own last exception, or -1. The search ends at an exception of the program's own,
// because the program survived everything before it. Three kinds of exceptions do not end
// the search: an exception caused by another failure, one raised while another one was
// handled, and one that follows an error at once without a cause of its own.
func (r *reader) begin() (from, last int) {
	last = -1
	for i, it := range r.items {
		if it.kind != raised || it.handler {
			continue
		}
		switch c := r.claim(i); {
		case c != nil && c.Strength > Weak && c.Says == Program:
			from, last = i, -1
		case c != nil && c.Strength > Weak || consequence().MatchString(it.text) || r.chained(i) || r.follows(i):
		default:
			from, last = i+1, i
		}
	}
	return from, last
}

// chained reports whether an exception was raised while another one was handled that
// claims a failure.
func (r *reader) chained(i int) bool {
	for i = r.items[i].chain; i >= 0; i = r.items[i].chain {
		if c := r.claim(i); c != nil && c.Strength > Weak {
			return true
		}
	}
	return false
}

// ends reports whether a line is an exception, printed without a traceback, with which
// the output ends.
func (r *reader) ends(i int) bool {
	return i == r.final && r.items[i].kind == output && namedException().MatchString(r.items[i].text)
}

// turns is the number of lines around a line that are searched for turns of a dialogue.
const turns = 15

// inDialogue reports whether a line is part of a dialogue that the program prints, such
// as a language model's: its words may be a user's question.
func (r *reader) inDialogue(i int) bool {
	spoken := func(it item) bool { return it.kind == output && it.sev == unnamed && role().MatchString(it.text) }
	return slices.ContainsFunc(r.items[max(0, i-turns):i+1], spoken) && slices.ContainsFunc(r.items[i+1:min(len(r.items), i+1+turns)], spoken)
}

// near limits the number of lines between an error and the traceback of an exception that
// follows from it.
const near = 12

// nearest replaces near if the error's line has no level and the exception no cause.
const nearest = 6

// follows reports whether an exception names no cause of its own and comes right after
// an error that claims exhausted memory.
func (r *reader) follows(i int) bool {
	bare := r.outcome(i) || silent().MatchString(r.items[i].text)
	if text := r.items[i].text; specific().MatchString(text) && !strings.Contains(text, "NoneType") && !bare {
		return false
	}
	at := r.items[i].opened
	for n := 0; at > 0 && n < near; {
		at--
		it := r.items[at]
		if it.text == "" || indented(it.text) || chatter().MatchString(it.text) && it.sev != failure {
			continue
		}
		n++
		if it.kind == output && progressLine().MatchString(it.msg) {
			return false
		}
		if c := r.claim(at); c != nil && c.Strength >= Words && (it.sev == failure || it.kind == raised || bare && n <= nearest && c.Strength == Strong) {
			return true
		}
	}
	return false
}

// outcome reports whether an exception only names the object that could not be loaded or
// created. Some exceptions, such as pydantic's, have their message on the next lines.
func (r *reader) outcome(i int) bool {
	text := r.items[i].text
	for _, it := range r.items[i+1 : min(i+3, len(r.items))] {
		if !indented(it.text) {
			break
		}
		text += "\n" + it.text
	}
	return outcome().MatchString(text) && !noOutcome().MatchString(text)
}

// pins reports whether an exception comes from a call that allocates pinned memory.
func (r *reader) pins(i int) bool {
	if r.items[i].kind != raised || i == 0 {
		return false
	}
	for at := i - 1; at >= max(0, i-3); at-- {
		if text := r.items[at].text; strings.Trim(text, " ^~") != "" {
			return pinCall().MatchString(text) && (at == 0 || !pinLoop().MatchString(r.items[at-1].text))
		}
	}
	return false
}

const (
	// atEnd is the largest age of an exception for which later lines of another stream do
	// not count as work: buffered output comes after the exception that ends a program.
	atEnd = 3 * time.Second
	// maxShapes is the largest number of different lines of ordinary output after a claim.
	// More lines show that the program continued. Lines that differ only in numbers count
	// once, as in a dump.
	maxShapes = 20
	// leastWork is the number of lines of ordinary work that show that the program
	// continued. One is not enough: a progress bar prints its last state again when it is
	// closed.
	leastWork = 2
)

// wentOn reports whether the program continued to work after a line.
func (r *reader) wentOn(i int) bool {
	claim := r.items[i]
	buffered := claim.kind == raised && claim.origin.Stream > 0 && claim.origin.Age >= 0 && claim.origin.Age <= atEnd
	shapes, work := map[string]bool{}, map[string]bool{}
	for _, it := range r.items[i+1:] {
		if buffered && it.origin.Stream != claim.origin.Stream || it.kind != output || it.lane != claim.lane || it.text == "" || indented(it.text) || it.sev == failure || chatter().MatchString(it.text) {
			continue
		}
		if goesOn().MatchString(it.text) && !suggestion().MatchString(it.text) {
			return true
		}
		if progressLine().MatchString(it.msg) {
			work[it.text] = true
		}
		shapes[shape(it.text)] = true
	}
	return len(work) >= leastWork || len(shapes) > maxShapes
}

// shape returns a line with its numbers left out.
func shape(text string) string {
	return digits().ReplaceAllString(text, "0")
}

// context joins a line with some lines after it, because messages are wrapped, and some
// frameworks print several lines.
func (r *reader) context(i int) string {
	var b strings.Builder
	for j, it := range r.items[i:min(i+12, len(r.items))] {
		if j > 0 && (it.kind != output || strings.Contains(it.text, "Tried to allocate") || it.lane != r.items[i].lane) {
			break
		}
		b.WriteString(strings.TrimSpace(it.text))
		b.WriteByte('\n')
	}
	return b.String()
}

// around returns the lines of an exception's traceback, or the lines right before a line.
// They show which memory a message is about.
func (r *reader) around(i int) string {
	from := max(0, i-2)
	if at := r.items[i].opened; at >= 0 {
		from = max(at, i-30)
	}
	var b strings.Builder
	for _, it := range r.items[from:i] {
		b.WriteString(it.text)
		b.WriteByte('\n')
	}
	return b.String()
}

func newReader(tail []string, opt Options) *reader {
	r := &reader{opt: opt, items: make([]item, len(tail))}
	r.items = r.items[:0]
	stamped := areCollected(tail)
	lanes := map[string]*lane{}
	first := len(tail) - len(opt.Origins)
	for i, text := range tail {
		text = ansi().ReplaceAllString(text, "")
		if stamped {
			text = text[len(collected().FindString(text)):]
		}
		mark := marked().FindString(text)
		ln := lanes[mark]
		if ln == nil {
			ln = &lane{previous: -1, opened: -1}
			lanes[mark] = ln
		}
		origin := Origin{Age: -1}
		if i >= first && first >= 0 {
			origin = opt.Origins[i-first]
		}
		text = strings.TrimRight(text[len(mark):], " \t\r")
		sev, lines := unnamed, []string{text}
		if level, msg, ok := structured(text); ok {
			sev, lines = level, strings.Split(msg, "\n")
		}
		for _, text := range lines {
			it := ln.item(text, len(r.items), sev)
			it.lane, it.origin = strings.TrimSpace(mark), origin
			r.items = append(r.items, it)
		}
	}
	r.final = len(r.items) - 1
	for r.final >= 0 && r.items[r.final].text == "" {
		r.final--
	}
	return r
}

// areCollected reports whether all lines have a log collector's prefix.
func areCollected(tail []string) bool {
	any := false
	for _, text := range tail {
		if text = ansi().ReplaceAllString(text, ""); text == "" {
			continue
		}
		if !collected().MatchString(text) {
			return false
		}
		any = true
	}
	return any
}

// lane is the state of one process's output. Launchers prefix the lines of each process
// and print them interleaved.
type lane struct {
	inside   bool // inside a traceback
	strays   int  // lines within the traceback that do not belong to it
	handler  bool
	chained  bool // the next exception follows from the last one
	previous int  // index of the last exception, or -1
	opened   int  // index of the line that began the traceback, or -1
	// indent is the white space before the first line of the traceback.
	indent string
}

// maxStrays is the largest number of lines within a traceback that do not belong to it.
const maxStrays = 30

// item reads the lane's next line. floor is the severity of the surrounding record, or
// unnamed.
func (l *lane) item(text string, i int, floor severity) item {
	sev, msg := prefix(text)
	if sev == unnamed {
		sev = floor
	}
	it := item{text: text, msg: msg, sev: sev, chain: -1, opened: -1}
	bare := text
	if l.inside {
		bare = strings.TrimPrefix(text, l.indent)
	}
	if sev != unnamed { // a logger writes each line of a traceback separately
		bare = msg
	}
	switch {
	case strings.Contains(text, "Traceback (most recent call last)"):
		it.kind, l.inside, l.strays, l.opened = frame, true, 0, i
		l.indent = text[:len(text)-len(strings.TrimLeft(text, " \t"))]
	case sourceLine().MatchString(text):
		it.kind = frame
	case !l.inside && frameLine().MatchString(text): // the head is missing in the tail or in the log
		it.kind, l.inside, l.strays, l.opened = frame, true, 0, i
		l.indent = ""
	case l.inside && (bare == "" || indented(bare) || strings.HasPrefix(msg, "File \"")):
		it.kind = frame
	case l.inside && exception().MatchString(bare) && !levelName().MatchString(bare):
		it.kind, it.handler, it.opened, it.msg, it.text = raised, l.handler, l.opened, bare, bare
		if l.chained {
			it.chain = l.previous
		}
		l.inside, l.handler, l.chained, l.previous = false, false, false, i
	case l.inside:
		l.strays++
		l.inside = l.strays < maxStrays
	case handlerRe().MatchString(text):
		l.handler = true
	case chainRe().MatchString(text):
		l.chained = true
	case text != "" && !indented(text):
		l.handler, l.chained = false, false
	}
	return it
}

// indented reports whether a line begins with white space or with the frame that
// some libraries draw around a traceback.
func indented(text string) bool {
	c, _ := utf8.DecodeRuneInString(text)
	return strings.ContainsRune(" \t│╭╰┃|", c)
}

// short makes one line of s, of at most about 300 bytes. It keeps both ends.
func short(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	const head, end = 220, 80
	if len(s) > head+end {
		s = strings.ToValidUTF8(s[:head], "") + " ... " + strings.ToValidUTF8(s[len(s)-end:], "")
	}
	return s
}
