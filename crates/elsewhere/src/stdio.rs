//! `rustix::stdio`.

refused! {
    dup2_stderr<F>(F);
    dup2_stdin<F>(F);
    dup2_stdout<F>(F);
}
