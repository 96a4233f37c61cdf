//! Programs decide as the answers say: the same machine as the kernel's, in a few lines.

use proptest::prelude::*;

use super::*;

/// Runs a program as the kernel does.
pub(crate) fn run(
    program: &[u64],
    architecture: Option<u32>,
    number: u32,
    arguments: [u64; 6],
) -> u32 {
    let data = |at: u32| match at {
        NUMBER => number,
        ARCHITECTURE_AT => architecture.unwrap_or(ARCHITECTURE),
        _ => {
            let at = at - ARGUMENTS;
            let argument = arguments[(at / 8) as usize];
            u32::try_from(argument >> (8 * (at % 8)) & u64::from(u32::MAX)).unwrap()
        }
    };
    let (mut accumulator, mut next) = (0, 0);
    loop {
        let word = program[next];
        let part = |from: u32, bits: u32| u32::try_from(word >> from & ((1 << bits) - 1)).unwrap();
        let (code, value) = (part(0, 16), part(32, 32));
        let (yes, no) = (part(16, 8) as usize, part(24, 8) as usize);
        next += 1;
        match u16::try_from(code).unwrap() {
            LOAD => accumulator = data(value),
            AND => accumulator &= value,
            JUMP => next += value as usize,
            IF_EQUAL => next += if accumulator == value { yes } else { no },
            IF_AT_LEAST => next += if accumulator >= value { yes } else { no },
            RETURN => return value,
            other => panic!("no such instruction: {other}"),
        }
    }
}

fn answer(answers: &Answers, number: u32, arguments: [u64; 6]) -> u32 {
    let Some(call) = answers.calls.get(&number) else { return answers.otherwise.number() };
    let holds =
        |it: &Condition| (arguments[usize::from(it.argument)] & it.mask == it.value) == it.is_equal;
    let found = call.rules.iter().find(|(conditions, _)| conditions.iter().all(holds));
    found.map_or(call.otherwise, |(_, answer)| *answer).number()
}

fn any_answer() -> impl Strategy<Value = Answer> {
    prop_oneof![Just(Answer::Allow), Just(Answer::Trap), (1..50).prop_map(Answer::Fail)]
}

prop_compose! {
    fn any_condition()(
        argument in 0..6_u8,
        mask in prop_oneof![Just(u64::MAX), Just(0xffff_ffff), Just(0xf), Just(7 << 40)],
        value in 0..4_u64,
        high: bool,
        is_equal: bool,
    ) -> Condition {
        let value = if high { value << 40 } else { value };
        Condition { argument, mask, value: value & mask, is_equal }
    }
}

fn any_call() -> impl Strategy<Value = Call> {
    let rule = (prop::collection::vec(any_condition(), 1..4), any_answer());
    let rules = prop::collection::vec(rule, 0..4);
    (rules, any_answer()).prop_map(|(rules, otherwise)| Call { rules, otherwise })
}

proptest! {
    #[test]
    fn a_program_answers_each_call_as_its_rules_say(
        calls in prop::collection::btree_map(0..40_u32, any_call(), 0..40),
        otherwise in any_answer(),
        arguments in prop::array::uniform6(prop_oneof![0..4_u64, Just(1 << 40), Just(3 << 40 | 1)]),
    ) {
        let answers = Answers { calls, otherwise };
        let program = answers.program();
        for number in (0..45).chain([0x4000_0000, u32::MAX]) {
            let found = run(&program, None, number, arguments);
            prop_assert_eq!(found, answer(&answers, number, arguments), "call {}", number);
        }
    }
}

#[test]
fn calls_of_another_interface_end_the_process() {
    let answers = Answers { calls: BTreeMap::new(), otherwise: Answer::Allow };
    let found = run(&answers.program(), Some(ARCHITECTURE ^ 1), 0, [0; 6]);
    assert_eq!(found, libc::SECCOMP_RET_KILL_PROCESS);
}
