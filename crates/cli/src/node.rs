//! `brigade node`: runs the tasks of a cluster in workers of a program.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::process::Command;

use brigade::cluster::{Node, NodeBuilder};
use brigade::pool::Encoded;
use brigade::{Key, Pool, PoolBuilder};
use miette::{IntoDiagnostic, Report, WrapErr, miette};

use crate::arguments::{self, LimitOptions};
use crate::confine;
use crate::each::Each;
use crate::remote::{self, COMMAND};

/// Runs the node until a signal ends it.
pub(crate) fn run(options: &arguments::Node) -> Result<u8, Report> {
    if options.label.iter().any(|label| label == remote::LABEL) {
        return Err(miette!(
            "the label `{}` is reserved for nodes that run commands: use --allow-commands",
            remote::LABEL
        ));
    }
    let (command, tasks) = match options.command.as_slice() {
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments);
            let tasks = tasks(&command)?;
            (command, tasks)
        }
        [] if options.allow_commands => (command_worker(options)?, vec![COMMAND.erase()]),
        [] => return Err(miette!("a node needs a worker program")),
    };
    let names: Vec<_> = tasks.iter().map(Key::name).collect();
    let names = names.join(", ");
    let endpoint = options.login.endpoint(options.nats.as_deref())?;
    let mut pool = Pool::builder().worker_command(&command);
    if !options.allow_commands {
        pool = pool.limits(limits(options).made());
        pool = pool.each(options.sandbox.made(), PoolBuilder::sandbox);
    }
    let mut node = Node::builder()
        .endpoint(endpoint)
        .each(options.replicas.map(NonZeroUsize::get), NodeBuilder::replicas)
        .queue(&options.queue)
        .pool(pool)
        .each(options.workers.map(NonZeroUsize::get), NodeBuilder::workers)
        .each(options.cores.map(NonZeroUsize::get), NodeBuilder::cores_per_worker)
        .each(&options.resource, |node, (name, resource)| node.resource(name, *resource))
        .each(options.memory, NodeBuilder::memory_gib)
        .each(&options.name, NodeBuilder::name)
        .each(&options.status, NodeBuilder::serve_status)
        .each(&options.label, NodeBuilder::label)
        .each(&tasks, NodeBuilder::register);
    if options.allow_commands {
        // Other tasks of the queue are for nodes that know their functions.
        node = node.only_label(remote::LABEL).without_backlog();
    }
    // A closed standard error does not keep a node from its work.
    let _ = writeln!(io::stderr(), "brigade: a node of the queue {} runs {names}", options.queue);
    let status = node.run().into_diagnostic().wrap_err("the node cannot run")?;
    let _ = writeln!(
        io::stderr(),
        "brigade: the node {} has ended with {} outcomes recorded",
        status.name,
        status.recorded
    );
    Ok(0)
}

/// Returns the command line of a worker that runs commands: this program.
fn command_worker(options: &arguments::Node) -> Result<Command, Report> {
    let program = std::env::current_exe().into_diagnostic();
    let program = program.wrap_err("cannot find the program of this process")?;
    let host = options.name.clone().unwrap_or_else(Node::host_name);
    let mut command = Command::new(program);
    // Checked here, where somebody reads it.
    let made = confine::confinement(&options.sandbox, limits(options));
    made.map_err(|problem| miette!("{problem}"))?;
    command.arg("serve-commands").arg(host).args(options.sandbox.words());
    if let Some(bytes) = options.task_memory {
        command.args(["--memory".to_owned(), bytes.to_string()]);
    }
    if let Some(time) = options.task_cpu_time {
        command.args(["--cpu-time".to_owned(), time.as_secs_f64().to_string()]);
    }
    Ok(command)
}

fn limits(options: &arguments::Node) -> LimitOptions {
    let (memory, cpu_time) = (options.task_memory, options.task_cpu_time);
    LimitOptions { memory, cpu_time, ..LimitOptions::default() }
}

/// Asks a worker which functions its program has registered.
fn tasks(command: &Command) -> Result<Vec<Key<Encoded, Encoded>>, Report> {
    let pool = Pool::builder().workers(1).worker_command(command).build().into_diagnostic()?;
    let names = pool
        .registered_functions()
        .into_diagnostic()
        .wrap_err("the worker program cannot be used")?;
    if names.is_empty() {
        return Err(miette!(
            help = "register them: `brigade::worker::Server::new().register(&KEY).run()`",
            "the worker program has no functions"
        ));
    }
    let task = |name: &String| {
        Key::learned(name).map_err(|problem| miette!("the function {name:?}: {problem}"))
    };
    names.iter().map(task).collect()
}
