package endtext

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"carma/internal/lazyregexp"
)

// severity is the level that a log line names, or unnamed.
type severity uint8

const (
	unnamed severity = iota
	info             // debug and notice too
	warning
	failure // error and fatal
)

var (
	// The prefixes that loggers write before a message. Each is removed in turn.
	stamp = lazyregexp.New(`^\[?\(?(\d{4}[-/]\d\d[-/]\d\d|\d\d[-/]\d\d[-/]\d{2,4}|\d\d[-/]\d\d|[A-Z][a-z]{2} +\d{1,2})?[T \-]?\d\d:\d\d:\d\d([.,:]\d+)?( ?(Z|[AP]M|UTC|[+-]\d\d:?\d\d))?\)?\]?[:,|]? *`)
	epoch = lazyregexp.New(`^\[ *\d+\.\d+\] *`)
	glog  = lazyregexp.New(`^\[?([IWEFC])\d{4} +\d\d:\d\d:\d\d(\.\d+)? +(\d+ +)?([\w./-]+:\d+)?\]? *`)
	level = lazyregexp.New(`^[\[(<|*]*(?i:(trace|debug|info|notice|success)|(warn|warning)|(error|err|fatal|critical|crit|severe|panic|emerg|alert|exception))([ ,]*[\w.-]*)?[\])>|*]+:? *|` +
		`^(?:(TRACE|DEBUG|INFO|NOTICE|SUCCESS)|(WARN|WARNING)|(ERROR|ERR|FATAL|CRITICAL|CRIT|SEVERE|PANIC))( *[:|\-]+ *| +)`)
	group  = lazyregexp.New(`^[\[(<{]([^\[\](){}<>]{0,80})[\])>}]:? *`)
	logger = lazyregexp.New(`^([\w.-]+/)*[\w.-]+\.(py|cc|cpp|cu|cuh|c|h|hpp|rs|go|jl|java|cxx)(:\d+)?(:\d+)?[\]:|]* +(-+ +)?|^[a-z][\w.-]*(::[\w.-]+)*(:[a-z_<>]\w*>?)?(:\d+)?( *[|] *|: +| +-+ +)`)
	logfmt = lazyregexp.New(`^(?:\w+=(?:"[^"]*"|\S*) +)*level=(\w+) +(?:\w+=(?:"[^"]*"|\S*) +)*msg=(.*)$`)
	single = lazyregexp.New(`^\[?([IWEF])\]? +`)
	pipe   = lazyregexp.New(`^[|\-:] +`)
)

// prefixes is the largest number of parts of a prefix to remove.
const prefixes = 12

// prefix separates a log line's message from a logger's prefix.
func prefix(text string) (severity, string) {
	sev, rest := unnamed, strings.TrimLeft(text, " \t")
	for range prefixes {
		before := len(rest)
		if m := glog().FindStringSubmatch(rest); m != nil {
			sev, rest = max(sev, letters[m[1][0]]), rest[len(m[0]):]
		}
		rest = rest[len(stamp().FindString(rest)):]
		rest = rest[len(epoch().FindString(rest)):]
		if m := level().FindStringSubmatch(rest); m != nil {
			sev, rest = max(sev, levelOf(m)), rest[len(m[0]):]
		}
		if m := single().FindStringSubmatch(rest); m != nil && (strings.HasPrefix(rest, "[") || before != len(text)) {
			sev, rest = max(sev, letters[m[1][0]]), rest[len(m[0]):]
		}
		if m := group().FindStringSubmatch(rest); m != nil && !claims(m[1]) {
			sev, rest = max(sev, groupLevel(m[1])), rest[len(m[0]):]
		}
		if m := logger().FindString(rest); m != "" && !claims(m) && !faultName().MatchString(m) {
			rest = rest[len(m):]
		}
		rest = rest[len(pipe().FindString(rest)):]
		if len(rest) == before {
			break
		}
	}
	return sev, rest
}

// faultName matches names that belong to a message rather than a logger.
var faultName = lazyregexp.New(`(?i)error|exception|fail|panic|fatal|memory|alloc|cuda|what\(\)|terminate`)

var letters = map[byte]severity{'I': info, 'W': warning, 'E': failure, 'F': failure, 'C': failure}

// levelOf returns the severity of a match of level.
func levelOf(m []string) severity {
	switch {
	case m[1] != "" || m[5] != "":
		return info
	case m[2] != "" || m[6] != "":
		return warning
	}
	return failure
}

// groupLevel returns the severity that a bracketed part names as its only or last word.
func groupLevel(text string) severity {
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,|:;", r) })
	for i, w := range words {
		if sev, ok := severityNamed(w); ok {
			return sev
		}
		if i == 0 && len(w) == 1 && len(words) > 1 {
			return letters[w[0]]
		}
	}
	return unnamed
}

func severityNamed(word string) (severity, bool) {
	switch strings.ToLower(word) {
	case "trace", "debug", "info", "notice", "information":
		return info, true
	case "warn", "warning":
		return warning, true
	case "error", "err", "fatal", "critical", "crit", "severe", "panic", "dpanic":
		return failure, true
	}
	return unnamed, false
}

// structured reads a line of JSON or logfmt.
func structured(text string) (severity, string, bool) {
	if m := logfmt().FindStringSubmatch(text); m != nil {
		sev, _ := severityNamed(m[1])
		return sev, strings.Trim(m[2], `"`), true
	}
	if !strings.HasPrefix(text, "{") {
		return 0, "", false
	}
	var fields map[string]any
	if json.Unmarshal([]byte(text), &fields) != nil {
		return 0, "", false
	}
	sev, msg := fieldsOf(fields)
	if inner, ok := fields["fields"].(map[string]any); ok {
		level, text := fieldsOf(inner)
		sev, msg = max(sev, level), msg+text
	}
	return sev, strings.TrimSpace(msg), msg != ""
}

// errorField matches the names of other fields that contain an error.
var errorField = lazyregexp.New(`(?i)err|exc|fail|trace|stack|dmesg|reason|detail|output|cause`)

// fieldsOf reads the fields that loggers give a level and a message.
func fieldsOf(fields map[string]any) (sev severity, msg string) {
	for _, key := range []string{"level", "severity", "levelname", "log_level", "lvl"} {
		if s, ok := fields[key].(string); ok {
			sev, _ = severityNamed(s)
		}
	}
	for _, key := range []string{"message", "msg", "event", "log", "error", "err", "exception", "exc", "exc_info", "traceback", "stack_trace", "detail", "reason"} {
		if s, ok := fields[key].(string); ok && s != "" {
			msg += s + "\n"
		}
	}
	if msg != "" && claims(msg) {
		return sev, msg
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if s, ok := fields[key].(string); ok && errorField().MatchString(key) && !strings.Contains(msg, s) {
			msg += s + "\n"
		}
	}
	return sev, msg
}
