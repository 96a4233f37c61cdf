//! Examples for the help of `brigade run`.

pub(super) const EXAMPLES: &str = "\
Examples:
  brigade run gzip -9 {} ::: *.log                 one job per argument
  find . -name '*.c' | brigade run -- cc -c {}     one job per input line
  brigade run -- ./bench {1} {2} ::: a b ::: 1 2   one job per combination
  brigade run --shell -- 'sort {} | uniq > {.}.u' ::: *.txt
  brigade run commands.txt                         one shell command per line
  brigade run --joblog log --resume jobs.toml      skip jobs that have succeeded
  brigade run --cluster nats://host jobs.toml      on the nodes of a cluster

Programs and inputs that are not to be trusted:
  brigade run --sandbox strict --read in --write out --memory 512M --cpu-time 60s \\
      -- ffmpeg -i {} out/{/.}.webm ::: in/*
  brigade run --sandbox strict --read src --write obj --execute /opt/cc \\
      -- cc -c {} -o obj/{/.}.o ::: src/*.c
  brigade run --sandbox strict --read script.py --memory 256M --cpu-time 5s \\
      --processes 20 -- python3 script.py {} ::: 1 2 3

Replacement strings in COMMAND:
  {}   argument                     {.}  argument without extension
  {/}  file name                    {/.} file name without extension
  {//} directory                    {2} {2.} {2/} ... argument of the 2nd list
  {#}  job number                   {%}  slot number

Exit status:
  0         all jobs succeeded             101  more than 100 jobs failed
  1 to 100  number of jobs that failed     255  the run itself failed
  130, 143, 129  stopped by Ctrl-C (SIGINT), SIGTERM, SIGHUP";
