// Package traces reads lists of task submissions, for carma replay and for
// load on a daemon.
//
// A trace is YAML (schema carma/trace/v1):
//
//	schema: carma/trace/v1
//	name: philly-t1-60
//	description: 60 tasks, mixed
//	source: where it comes from
//	campaign: v2                # which measurements of the workloads; v2 if left out
//	tasks:
//	  - {at: 0, workload: resnet50-imagenet-bs64}
//	  - {at: 3m1s, workload: vgg2, gpus: 1, name: mine, user: ann, priority: high, mem: 12G}
//
// at is seconds or a duration since the start of the trace. workload is a name
// or alias of package workloads. The rest may be left out: gpus (else the
// workload's), name, user, priority (low, normal, high) and mem (memory that
// the submitter declares, per GPU).
//
// Or it is CSV with a header line, arrival_s for at:
//
//	arrival_s,workload,gpus,name,user,priority,mem
//
// Only the first two columns must be there, in any order. task is read as
// workload, and the columns model, dataset, batch_size and epochs are passed
// over, so that the tables of the original's traces can be read as they are.
//
// Tasks need not be in order of arrival: they are sorted, and those that
// arrive at the same time stay in the order of the file.
//
// Traces can also be drawn: generated-SEED, or generated-SEEDxTASKS, names one
// of 60 or so many tasks with the original's gaps and mix of workloads. A seed
// gives the same trace as long as the shipped workloads stay as they are.
//
// An error is one line: the file, the line, what is wrong, what would be right.
package traces
