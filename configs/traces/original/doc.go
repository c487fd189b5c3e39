// Package original reads and writes traces in the original CARMA's form: a shell script
// that submits and sleeps, and a .rad file for each kind of task.
//
// A script has lines like these. Only comments, sleep and submit.py are allowed:
//
//	python src/submit.py --task workloads/resnet2.rad
//	sleep 73
//	python src/submit.py --task workloads/vgg.rad
//
// A line may have several commands, separated by ; or &&. A submission may end in &. The
// argument of sleep is written as for the shell's sleep: 73, 0.5, 2m, or several.
//
// A .rad file has 12 lines, identified by position: a comment, the environment, the
// command, the model's summary, the data set, the batch size, exclusive, the number of
// GPUs, and four figures in MiB. These are the measured peak and the estimates of Horus,
// FakeTensor and GPUMemNet; 40000 means none. The last four lines may be missing.
//
// Comments that begin with "# carma:" contain the properties of carma's traces that these
// formats lack, so that a trace can be read back unchanged. A comment in the script
// contains the trace's name, campaign, description and source. A comment after a
// submission contains the task's name, user, priority and mem, if they differ from the
// values that the submission gives. Line 1 of a .rad file names the workload.
package original
