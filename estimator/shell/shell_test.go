package shell

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// shown formats the commands of a line: variables, words, and ? for a command that may be
// skipped.
func shown(line Line) string {
	var all []string
	for _, c := range line.Commands {
		text := strings.Join(slices.Concat(c.Env, c.Words), " ")
		if !c.Sure {
			text += " ?"
		}
		all = append(all, text)
	}
	return strings.Join(all, " | ")
}

// TestParse: a line is split into its commands, without shells and wrappers.
func TestParse(t *testing.T) {
	for _, row := range []struct{ line, want string }{
		{"python~train.py", "python train.py"},
		{"nohup~python~train.py", "python train.py"},
		{"env~-u~X~A=1~B=2~python~t.py", "A=1 B=2 python t.py"},
		{"env~-S~A=1 python -u~t.py", "A=1 python -u t.py"},
		{"timeout~-k~5~2h~nice~-n~10~python~t.py", "python t.py"},
		{"conda~run~-n~torch~--no-capture-output~torchrun~t.py", "torchrun t.py"},
		{"uv~run~--with~trl~t.py~--a", "python t.py --a"},
		{"uv~run~-m~torch.distributed.run~t.py", "python -m torch.distributed.run t.py"},
		{"poetry~run~python~t.py", "python t.py"},
		{"singularity~exec~--nv~-B~/d:/d~x.sif~python~t.py", "python t.py"},
		{"numactl~-m~0~-N~0~python~t.py", "python t.py"},
		{"taskset~-c~0-3~python~t.py", "python t.py"},
		{"nsys~profile~-o~out~--stats=true~python~t.py", "python t.py"},
		{"/opt/nvidia/nvidia_entrypoint.sh~python~t.py", "python t.py"},
		{"/entrypoint.sh~--model-id~m", "/entrypoint.sh --model-id m"},
		{"tini~-g~--~python~t.py", "python t.py"},
		{"sh~-c~exec python t.py", "python t.py"},
		{"bash~-lc~cd /w && A=1 B='x y' python t.py --lr 1e-4", "cd /w | A=1 B=x y python t.py --lr 1e-4"},
		{"bash~-c~export A=1; python t.py; B=2; python u.py", "A=1 python t.py | A=1 python u.py"},
		{"bash~-c~bash -c 'A=1 python t.py'", "A=1 python t.py"},
		{"bash~-c~N=4; torchrun --nproc_per_node=$N t.py", "torchrun --nproc_per_node=4 t.py"},
		{"bash~-c~torchrun --nproc_per_node=${N:-2} \"$@\"", "torchrun --nproc_per_node=2 $@"},
		{"bash~-c~torchrun --nproc_per_node=$GIVEN t.py", "torchrun --nproc_per_node=8 t.py"},
		{"bash~-c~torchrun --nproc_per_node=$(nvidia-smi -L | wc -l) t.py", "torchrun --nproc_per_node=$(nvidia-smi -L | wc -l) t.py"},
		{"bash~-c~python t.py || python u.py", "python t.py | python u.py ?"},
		{"bash~-c~if [ -f x ]; then python a.py; else python b.py; fi", "[ -f x ] | python a.py ? | python b.py ?"},
		{"bash~-c~for i in 1 2; do python $i.py; done", "python $i.py ?"},
		{"bash~-c~CUDA_VISIBLE_DEVICES=0 python a.py & CUDA_VISIBLE_DEVICES=1 python b.py & wait", "CUDA_VISIBLE_DEVICES=0 python a.py | CUDA_VISIBLE_DEVICES=1 python b.py | wait"},
		{"bash~-c~python t.py 2>&1 | tee log", "python t.py | tee log"},
		{"bash~-c~time python t.py", "python t.py"},
		{"bash~train.sh~4", "bash train.sh 4"},
		{"bash~-c~python t.py \\\n  --a \\\n  --b", "python t.py --a --b"},
		{"bash~-c~if [", ""},
		{"", ""},
	} {
		if got := shown(Parse(strings.Split(row.line, "~"), []string{"GIVEN=8"})); got != row.want && row.line != "" {
			t.Errorf("%s:\ngot  %s\nwant %s", row.line, got, row.want)
		}
	}
	for _, row := range []struct{ script, want string }{ // with bars of their own
		{"python t.py 2>&1 | tee log", `["python t.py 2>&1 | tee log" false 2]`},
		{"set -euo pipefail; python t.py | tee log", `["python t.py | tee log" true 2]`},
		{"set -o pipefail\npython t.py | grep -v x | tee log", `["python t.py | grep -v x | tee log" true 3]`},
		{"python t.py | tee log; exit ${PIPESTATUS[0]}", `["python t.py | tee log" true 2]`},
	} {
		var got []string
		for _, p := range Parse([]string{"bash", "-c", row.script}, nil).Pipes {
			got = append(got, fmt.Sprintf("[%q %v %d]", p.Text, p.Failing, len(p.Commands)))
		}
		if strings.Join(got, " ") != row.want {
			t.Errorf("%s: %s, want %s", row.script, got, row.want)
		}
	}
	for _, argv := range [][]string{{"bash", "-o", "pipefail", "-c", "a | b"}, {"bash", "-eo", "pipefail", "-c", "a | b"}, {"bash", "-c", "-o", "pipefail", "a | b"}} {
		if line := Parse(argv, nil); len(line.Pipes) != 1 || !line.Pipes[0].Failing {
			t.Errorf("%q: %+v", argv, line.Pipes)
		}
	}
}

// TestDeep: scripts made to exhaust a parser are read within its bounds.
func TestDeep(t *testing.T) {
	long := func(s string) string { return strings.Repeat(s, maxScript/len(s)) }
	for _, script := range []string{
		long("("), long("$("), long("`"), long("{ "), long("[[ ("), long("${a:-"), long("$(("), long("if a; then "), long("a | "), long("a && ") + "a", long("{1..9}"),
		long("a|") + "a", long("! "), long("\\"), long("'"), long("\"$("), long("function f { "), long("<("), long("<<a\n"), long("a=$a$a$a$a;"), "a=" + long("x") + ";" + long("a=$a$a;"),
		long("sh -c 'sh -c "), long("eval "), strings.Repeat("x", maxScript+1),
	} {
		Parse([]string{"bash", "-c", script}, []string{"a=" + long("y")})
	}
	if n := len(Parse([]string{"sh", "-c", strings.Repeat("a;", maxLines+5)}, nil).Commands); n != maxLines {
		t.Errorf("%d commands", n)
	}
}

// FuzzParse checks that the reader returns for any command line.
func FuzzParse(f *testing.F) {
	f.Add("bash -c", "a | b; ${x:-y} $((1+1)) `c` {a,b}")
	f.Fuzz(func(t *testing.T, argv, script string) {
		Parse(append(strings.Fields(argv), script), []string{"x=1"})
	})
}
