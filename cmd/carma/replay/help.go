package replay

const help = `Run traces through carma's own scheduler in virtual time, on modelled GPUs. It
prints a table for each trace with a row per policy. It needs no daemon, no
containers and no GPU. Equal input gives equal output.

TRACE is a file, the name of a trace that ships with carma, or generated-SEED or
generated-SEEDxTASKS: 60 or TASKS tasks drawn from that seed, 30 % light, 60 %
medium and 10 % heavy ones, with arrival gaps of Microsoft's Philly trace.

Columns, over all tasks of a trace:
  MAKESPAN     from the first submission to the last end
  JCT, P95     from submission to the last end: mean, 95th percentile
  WAIT, EXEC   mean waiting; mean time running in the attempt that finished
  OOMS, LOST   attempts that ran out of GPU memory; GPU time of failed attempts
  WORST        longest execution of any task, relative to running alone
  ABOVE        share of the tasks slowed down above 1.6
  MJ           energy
  SMACT, MEM   SM activity and memory in use, means over time and GPUs
  RATIO        makespan relative to Exclusive: one task per GPU, in strict order
No schedule beats the lower bound. With several traces, a last table has
geometric means of the ratios.

--policy takes policies and presets. A policy is run with every estimator of
--estimator. A preset is a published policy with all its rules; --presets lists
them. "ablation" is policy carma without one of its ingredients in each row,
"estimators" is policies magm and carma under each estimator.

Estimators: catalogue books as the daemon does, oracle the true peak, none
nothing, declared the trace's declaration. horus, faketensor and gpumemnet are
the published estimates. carma is carma's own estimate, the upper bound at 95 %
from the network alone; computed:NAME is another estimator of carma estimate. A
workload without such an estimate gets a whole GPU.

Sharing: with mps, kernels of several tasks run at once, as fitted to measured
pairs. With time-slicing, tasks take turns once they fill the GPU's time.

Conditions: --know says what is known of the tasks before they run. With
nothing, carma starts as in a new lab: no memory, no activity, no run times.
With memory, the estimator's memory is known and nothing else. Tasks of one
workload count as runs of the same program, so later ones profit from earlier
ones; --no-repeats turns that off. --truth changes the modelled world, not what
policies believe:
  pair, time, activity    lognormal errors, by standard deviation, of the speed
                          of one workload beside another, of each run time, and
                          of each workload's activity
  memory                  likewise of each workload's GPU memory
  growth                  share of the tasks whose memory grows by 40 % late
  preallocate             share of the workloads that take 75 % of a GPU first
  silent                  share of the tasks whose output tells no progress
  idle                    share of the tasks that hold their memory and do
                          nothing for 4 h in the middle of their work
  processes               share of the tasks whose kernels' time samples tell
  seed                    of all draws; each trace has draws of its own
  pairs                   CSV file of measured pairs as in --pairs, by workload
                          or solo profile: their speeds replace the model's
  perturbed               pair=0.12,time=0.54,activity=0.2

With --urgent, this share of the tasks has high priority. With --suspend, GPUs
can take tasks off and put them back: a task stands still, and its memory is
copied to host memory (default: 512 GiB of each machine; 200 ms beside each
copy). Who is suspended is the policy's to decide. A second table tells of both:
  URGENT WAIT  mean time that urgent tasks are queued, starting or suspended;
               P95, and P95 of those on one GPU
  OTHERS JCT   mean JCT of the other tasks, of those that do not idle
  STRETCHED    99th percentile of the time from first start to end, to alone
  SUSPENDS     suspensions; AWAY P95, LONGEST: how long they last
  COPIES       time in which memory was copied
  EMPTY        with --drain: mean time until the GPU has no task; MOST: longest
  IDLE ENDED   with --truth idle: tasks that idle and did not succeed

With --live, submit every task of one trace to the daemon at its time of
arrival, as a container, and wait for all. The times are the daemon's: a
simulated server runs --speed times faster than the clock.

With --html, also write a report: one file, which needs no network, with what
came out in words, the table, charts of all policies that are zoomed together
(where each task ran, memory, SM activity, power and queue over time, times and
slowdowns), and the tasks. With --svg, write what ran where as a picture of one
trace; {policy} in the name of the file makes one for each policy. With --csv,
write a line for each task under each policy. With --chrome-trace, write what
ran where as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing open.

With --pairs, run nothing: print how far the interference model is off on pairs
of tasks that were measured together. The file has columns solo_profile_a and
solo_profile_b, and overlap_speed_a and overlap_speed_b or speed_a and speed_b.
The file of --profiles has workload_id, smact_mean and drama_mean and, for the
time of a step, model, dataset, batch_size, epochs and train_loop_s. Other
columns are ignored. Speeds are relative to running alone.

With --set, change rules of the policies, but not of presets: order=fair,
slot=2h, quota-gpus=2 and so on (carma config lists the keys).

With --journal, replay the journal of a daemon through the same scheduler, and
check that it decides the same, as carma history verify does.

With --check, print the bounds of a file that do not hold, and the values that
moved since --record last kept them there. With --published, replay the
experiments that CARMA and AEGIS published, and print both results.

Exits with 1 if a task did not succeed or a bound does not hold.`

const examples = `  carma replay philly-t1-60 --policy exclusive,magm
  carma replay philly-t1-60 --policy magm,carma,OR-MAGM --estimator oracle,none
  carma replay philly-t1-60 philly-t2-60 --gpu-count 3 --json
  carma replay big.yaml --gpus sim:dgx-h100 --machines 1250 --policy carma
  carma replay philly-heavy-60 --html report.html --csv tasks.csv
  carma replay smoke-5 --policy exclusive,magm,carma --svg ran-{policy}.svg
  carma replay philly-mix-90 --policy carma --set order=fair --set slot=2h
  carma replay philly-mix-90 --know nothing --no-repeats
  carma replay philly-mix-90 --know memory --truth perturbed,growth=0.3,seed=2
  carma replay generated-1 --policy carma --urgent 0.1 --suspend 5GB/s
  carma replay --check test/replay-bounds.yaml
  carma replay configs/traces/philly-t1-60.yaml --live --speed 600
  carma replay --pairs test/lab/fit/pairs.csv`
