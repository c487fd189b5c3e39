package progress

import (
	"strings"

	"carma/configs/patterns"
)

var (
	// figureRE is 1158.7 images/s, where it ends.
	figureRE = patterns.New(`(\d[\d,]*\.?\d*) ?([kmg]?)(img|imgs|images?|samples?|seqs?|sequences?|examples?|tokens?|toks?|words?)(?:/| per )s(?:ec(?:ond)?)?\b`)
	// keyedRE is ips: 96.2, wps=962, tps: 10,050, tokens_per_second: 76477.73, SamplesPerSec=83.5, behind the key.
	keyedRE = patterns.New(`^(?:ec)?['"]? *[:=]? *(\d[\d,]*\.?\d*)`)
	// timmRE is Time: 0.221s, 1158.7/s.
	timmRE = patterns.New(`time: \d[\d.]*s, +(\d[\d.]*)/s`)
)

// keys are what figures are called that stand before their numbers, and units
// what they count.
var keys, units = []string{
	"img/s", "images/s", "ips", "wps", "tps", "tok/s", "tokens/s", "tokens_per_second", "samples/s", "samples_per_second", "samplespersec",
}, []string{
	Images, Images, Images, Tokens, Tokens, Tokens, Tokens, Tokens, Samples, Samples, Samples,
}

// figures reads the throughput that stands beside a counter.
func (m *mark) figures(line string) {
	for _, sign := range [...]string{"/s", " per s"} {
		for i := 0; ; i += len(sign) {
			n := strings.Index(line[i:], sign)
			if n < 0 {
				break
			}
			i += n
			if f := figureRE().FindStringSubmatch(line[max(0, i-40):min(len(line), i+10)]); f != nil {
				m.figure, m.per = number(f[1]+f[2]), countedBy(f[3])
				return
			}
		}
	}
	for k, key := range keys {
		i := strings.Index(line, key)
		if i < 0 || i > 0 && (line[i-1] == '_' || line[i-1] >= 'a' && line[i-1] <= 'z') && key != "samplespersec" {
			continue
		}
		if f := keyedRE().FindStringSubmatch(line[i+len(key):]); f != nil {
			m.figure, m.per = number(f[1]), units[k]
			return
		}
	}
	if i := strings.Index(line, "time: "); i >= 0 {
		if f := timmRE().FindStringSubmatch(line[i:min(len(line), i+60)]); f != nil {
			m.figure, m.per = number(f[1]), Images
		}
	}
}

// countedBy is the unit of a figure by its name.
func countedBy(name string) string {
	switch name[0] {
	case 'i':
		return Images
	case 't', 'w':
		return Tokens
	}
	return Samples
}

// figures is the throughput that is printed, and a count made of it for tasks
// that print nothing else.
type figures struct {
	last  float64 // per second; 0: none was seen
	per   string
	at    float64
	count float64
}

// take keeps a figure and counts on by it.
func (f *figures) take(m mark, at float64) {
	if m.figure <= 0 || m.aside {
		return
	}
	if f.per == m.per && at > f.at {
		f.count += m.figure * (at - f.at)
	}
	f.last, f.per, f.at = m.figure, m.per, at
}
