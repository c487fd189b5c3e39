package main

import (
	"bytes"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const tasks = "trace,policy,jct_s\nx,Exclusive,600\nx,Exclusive,90\nx,carma,80\nx,carma,500\n"

// TestStudy: the picture is valid XML, with a line and a name for each policy.
func TestStudy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tasks.csv")
	if err := os.WriteFile(file, []byte(tasks), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run([]string{"a < b", file}, &out); err != nil {
		t.Fatal(err)
	}
	svg := out.String()
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if strings.Count(svg, "<polyline") != 2 || strings.Contains(svg, "NaN") || !strings.Contains(svg, ">carma<") || !strings.Contains(svg, ">Exclusive<") {
		t.Error(svg)
	}
}

// TestRead: times are sorted by policy; a table without them is refused.
func TestRead(t *testing.T) {
	all, err := read(strings.NewReader(tasks))
	if err != nil || len(all) != 2 || all[0].policy != "Exclusive" || all[0].jct[0] != 90 || all[1].jct[1] != 500 {
		t.Errorf("%v, %v", all, err)
	}
	for _, bad := range []string{"", "policy\nx\n", "policy,jct_s\n", "policy,jct_s\nx,-1\n", "policy,jct_s\nx,y\n"} {
		if all, err := read(strings.NewReader(bad)); err == nil {
			t.Errorf("%q: %v", bad, all)
		}
	}
}
