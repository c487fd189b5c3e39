package joblog

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func TestTimes(t *testing.T) {
	got, err := ParseTime("2017-10-07 01:11:39")
	if err != nil || got != time.Date(2017, 10, 7, 1, 11, 39, 0, time.UTC) || FormatTime(got) != "2017-10-07 01:11:39" {
		t.Errorf("%v %v", got, err)
	}
	for _, s := range []string{"", "2017-10-07", "2017-13-07 01:11:39", "2017-10-07T01:11:39", "0001-01-01 00:00:00", "None"} {
		if _, err := ParseTime(s); err == nil {
			t.Errorf("%q is taken for a time", s)
		}
	}
}

func TestSeconds(t *testing.T) {
	for s, want := range map[string]time.Duration{"0": 0, "73": 73 * time.Second, "0.5": 500 * time.Millisecond, "1.000000001": time.Second + 1, "315360000": MaxTime} {
		if d, err := ParseSeconds(s); err != nil || d != want || FormatSeconds(d) != s {
			t.Errorf("%s: %v %v, written %s", s, d, err, FormatSeconds(d))
		}
	}
	for _, s := range []string{"", ".", "-1", "1m2", "1e3", "NaN", "1,5", "315360001", "99999999999999999999", "1.2.3", " 1"} {
		if d, err := ParseSeconds(s); err == nil {
			t.Errorf("%q is taken for %v", s, d)
		}
	}
}

func TestTable(t *testing.T) {
	table, err := NewTable(strings.NewReader("\ufeff# a remark\n\n B ,a,\"c\"\r\n1,2,3\r\n# another\n4,\"5,\"\"x\",6\n7,8\n\"9,1,2\n,,\n"), "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for {
		err := table.Next()
		var broken *LineError
		if errors.Is(err, io.EOF) {
			break
		} else if errors.As(err, &broken) {
			got = append(got, broken.Error())
		} else if err != nil {
			t.Fatal(err)
		} else {
			got = append(got, strings.Join([]string{table.Get("a"), table.Get("b"), table.Get("c"), table.Get("d")}, "|"))
		}
	}
	want := []string{"2|1|3|", `5,"x|4|6|`, "7: 2 values for 3 columns", `8: not CSV: extraneous or missing " in quoted-field`, "|||"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if !table.Has("c") || table.Has("d") {
		t.Error("columns")
	}
}

func TestTableErrors(t *testing.T) {
	for content, want := range map[string]string{
		"":                         "1: empty; the first line names columns: job_id,state",
		"# only\n":                 "1: empty",
		"a,b\n":                    "1: no column job_id; nearest: b",
		"job_id,jo,state,job_id\n": `1: column "job_id" a second time`,
		"\n\njob_id,stat\n":        "3: no column state; nearest: stat",
		"\"job_id\n":               "1: not CSV: ",
	} {
		if _, err := NewTable(strings.NewReader(content), "job_id", "state"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", content, err, want)
		}
	}
	// Only the line that is too long is lost.
	table, err := NewTable(strings.NewReader("a,b\n1,"+strings.Repeat("x", 2*MaxEntry)+"\n3,4\n"), "a")
	if err != nil {
		t.Fatal(err)
	}
	var broken *LineError
	if err := table.Next(); !errors.As(err, &broken) || broken.Line != 2 {
		t.Error(err)
	}
	if err := table.Next(); err != nil || table.Get("b") != "4" || table.Line() != 3 {
		t.Errorf("%v: %s in line %d", err, table.Get("b"), table.Line())
	}
}

// FuzzTable: in any file, lines are reported in order and within the file, and
// every valid line has all columns.
func FuzzTable(f *testing.F) {
	f.Add("a,b\n1,2\n\"3\",\"4\n5,6\n")
	f.Add("\ufeffA ,b,c\r\n\r\n#x\n1,,\n")
	f.Fuzz(func(t *testing.T, content string) {
		table, err := NewTable(strings.NewReader(content), "a")
		if err != nil {
			return
		}
		lines, last := strings.Count(content, "\n")+1, 0
		for {
			err := table.Next()
			var broken *LineError
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil && !errors.As(err, &broken) {
				t.Fatal(err)
			}
			if table.Line() <= last || table.Line() > lines || err == nil && len(table.values) != table.count {
				t.Fatalf("line %d of %d after %d", table.Line(), lines, last)
			}
			last = table.Line()
		}
	})
}
