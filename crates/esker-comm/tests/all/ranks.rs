//! SelfComm and thread-ranks pass the suite, and a lost rank does not hang the others.

use std::sync::Arc;
use std::time::{Duration, Instant};

use esker_comm::suite::{self, Effort};
use esker_comm::{
    ByNode, CommError, Communicator, CommunicatorExt, Counted, LaunchError, Laying, Message,
    NodeMemory, SelfComm, Source, Stages, ThreadWorld, launch,
};
use esker_testkit::ranks::{HANG, launched};

#[test]
fn one_process_passes_the_suite() {
    let comm: Arc<dyn Communicator> = Arc::new(SelfComm::new());
    suite::run(&comm, 1, Effort::FULL).unwrap();
}

#[test]
fn threads_pass_the_suite_at_every_size() {
    for ranks in [1, 2, 3, 4, 7, 8, 16] {
        let effort = if ranks < 8 { Effort::FULL } else { Effort::LIGHT };
        for outcome in launch(ranks, |comm| suite::run(&comm, ranks as u64, effort)) {
            outcome.unwrap();
        }
    }
}

#[test]
fn a_counted_communicator_passes_the_suite() {
    for outcome in launch(3, |comm| {
        let comm: Arc<dyn Communicator> = Arc::new(Counted::new(comm));
        suite::run(&comm, 9, Effort::LIGHT)
    }) {
        outcome.unwrap();
    }
}

#[test]
fn threads_on_several_nodes_pass_the_suite() {
    let world = ThreadWorld::new(7).ranks_per_node(3);
    for outcome in world.launch(|comm| suite::run(&comm, 5, Effort::LIGHT)).unwrap() {
        outcome.unwrap();
    }
    let nodes = world.launch(|comm| comm.split_by_node().unwrap().size()).unwrap();
    assert_eq!(nodes, [3, 3, 3, 3, 3, 3, 1]);
}

#[test]
fn ranks_whose_letters_are_gathered_by_node_pass_the_suite() {
    for (ranks, ranks_per_node) in [(7, 3), (4, 4), (3, 1), (1, 1)] {
        let world = ThreadWorld::new(ranks).ranks_per_node(ranks_per_node);
        let outcomes = world.launch(|comm| {
            let comm: Arc<dyn Communicator> = Arc::new(ByNode::new(comm).unwrap());
            suite::run(&comm, 11, Effort::LIGHT)
        });
        for outcome in outcomes.unwrap() {
            outcome.unwrap();
        }
    }
}

/// Runs `program` on 4 ranks of which rank 2 panics, and returns what the others saw.
fn with_a_panic_on_rank_2(
    wait: impl Fn(&dyn Communicator) -> Result<(), CommError> + Sync,
) -> Vec<CommError> {
    let seen = std::sync::Mutex::new(Vec::new());
    let start = Instant::now();
    let outcome = ThreadWorld::new(4).launch(|comm| {
        if comm.rank() == 2 {
            std::thread::sleep(Duration::from_millis(20));
            panic!("the reactor is on fire");
        }
        seen.lock().unwrap().push(wait(comm.as_ref()).unwrap_err());
    });
    let expected = LaunchError::Panicked { rank: 2, message: "the reactor is on fire".into() };
    assert_eq!(outcome.unwrap_err(), expected);
    // Ranks that waited for a time-out instead would take this long.
    assert!(start.elapsed() < HANG);
    seen.into_inner().unwrap()
}

#[test]
fn a_panic_ends_the_waits_of_the_other_ranks() {
    let panicked = vec![CommError::RankPanicked { rank: 2 }; 3];
    assert_eq!(with_a_panic_on_rank_2(|comm| comm.barrier()), panicked);
    let receive = |comm: &dyn Communicator| comm.irecv(Source::Any, 0)?.wait().map(drop);
    assert_eq!(with_a_panic_on_rank_2(receive), panicked);
    // In another communicator than the one that the rank was last in.
    let in_a_split = |comm: &dyn Communicator| comm.split(Some(0), 0).map(drop);
    assert_eq!(with_a_panic_on_rank_2(in_a_split), panicked);
}

#[test]
#[should_panic(expected = "rank 1 panicked: no")]
fn launch_says_which_rank_panicked() {
    launch(2, |comm| assert!(comm.rank() != 1, "no"));
}

#[test]
fn a_rank_that_returns_early_does_not_hang_the_others() {
    let outcomes = launch(3, |comm| if comm.rank() == 1 { Ok(()) } else { comm.barrier() });
    let left = |operation| Err(CommError::RankLeft { operation, rank: 1 });
    assert_eq!(outcomes[0], left("barrier"));
    assert_eq!(outcomes[2], left("barrier"));
    let outcomes = launch(3, |comm| match comm.rank() {
        1 => comm.isend(0, 0, Message::from(vec![1])).map(drop),
        0 => {
            // What was sent before it left is still delivered.
            comm.irecv(Source::Rank(1), 0)?.wait()?;
            comm.irecv(Source::Rank(1), 0)?.wait().map(drop)
        }
        _ => Ok(()),
    });
    assert_eq!(outcomes[0], left("receive"));
}

#[test]
fn different_collectives_at_once_are_an_error_on_every_rank() {
    let outcomes =
        launch(3, |comm| if comm.rank() == 0 { comm.sum_u64(1).map(drop) } else { comm.barrier() });
    for outcome in outcomes {
        assert!(matches!(outcome, Err(CommError::OutOfStep { .. })), "{outcome:?}");
    }
}

#[test]
fn thread_ranks_move_messages_without_copying() {
    let addresses = launch(2, |comm| {
        let message = Message::from(vec![comm.rank() as u8; 1000]);
        let sent = message.as_ptr() as usize;
        let arrived = comm.sparse_exchange(vec![(1 - comm.rank(), message)]).unwrap();
        (sent, arrived[0].1.as_ptr() as usize)
    });
    assert_eq!(addresses[0].0, addresses[1].1);
    assert_eq!(addresses[1].0, addresses[0].1);
}

/// Three ranks of which rank 1 does something else than its part of a turn; what the others saw.
fn with_a_turn_that_rank_1_leaves(
    leaves: impl Fn(&dyn Communicator, &NodeMemory) + Send + Sync + 'static,
) -> Vec<Option<CommError>> {
    let outcome = launched(3, move |comm| {
        let memory =
            comm.node_memory(&Stages { owners: vec![0], bytes: 100, buffers: 2 }).unwrap().unwrap();
        memory.open(0, 0).unwrap();
        if comm.rank() == 1 {
            leaves(&*comm, &memory);
            return None;
        }
        memory
            .lay(0, 0, 100)
            .and_then(|mut laying| {
                laying.claim(8 * comm.rank(), 8, 8, |_, out| out.fill(7));
                laying.finish()
            })
            .err()
            .or_else(|| match comm.rank() {
                0 => memory.take(0, 0, 100).err(),
                _ => memory.look(0, 0, 100).err(),
            })
    });
    outcome.unwrap_or_default()
}

#[test]
fn a_rank_that_leaves_a_turn_unfinished_does_not_hang_the_others() {
    let left = Some(CommError::RankLeft { operation: "node memory", rank: 1 });
    let seen = with_a_turn_that_rank_1_leaves(|_, memory| {
        drop(memory.lay(0, 0, 100).unwrap());
    });
    assert_eq!(seen, [left.clone(), None, left.clone()]);
    // It goes without a word; who has seen that goes, too, and may be what the last one sees.
    let seen = with_a_turn_that_rank_1_leaves(|_, _| {});
    let is_left = |seen: &Option<CommError>| matches!(seen, Some(CommError::RankLeft { .. }));
    assert!(is_left(&seen[0]) && is_left(&seen[2]), "{seen:?}");
    assert!(seen.contains(&left), "{seen:?}");
}

#[test]
fn a_rank_that_leaves_when_it_has_finished_is_not_missed() {
    // Longer than those who wait sleep before they look who is there.
    let long = std::time::Duration::from_millis(400);
    let outcomes = launch(4, move |comm| {
        let stages = Stages { owners: vec![0, 3], bytes: 100, buffers: 1 };
        let memory = comm.node_memory(&stages)?.unwrap();
        let lay = |stage| memory.lay(stage, 0, 100).and_then(Laying::finish);
        [0, 1].into_iter().try_for_each(|stage| memory.open(stage, 0))?;
        match comm.rank() {
            // It has nothing to look at, and goes.
            1 => return lay(0).and(lay(1)),
            2 => std::thread::sleep(long),
            _ => {}
        }
        lay(0).and(lay(1))?;
        if comm.rank() == 0 {
            drop(memory.take(0, 0, 100)?);
        }
        // Another owner shows its stage, and goes; who comes late finds it.
        if comm.rank() == 3 {
            memory.take(1, 0, 100)?.show();
            return memory.look(1, 0, 100).map(drop);
        }
        std::thread::sleep(long);
        memory.look(1, 0, 100).map(drop)
    });
    assert_eq!(outcomes, [Ok(()), Ok(()), Ok(()), Ok(())]);
}

#[test]
fn a_panic_ends_the_waits_for_a_turn() {
    let (told, seen) = std::sync::mpsc::channel();
    let told = std::sync::Mutex::new(told);
    let outcome = launched(3, move |comm| {
        let stages = Stages { owners: vec![0], bytes: 100, buffers: 1 };
        let memory = comm.node_memory(&stages).unwrap().unwrap();
        if comm.rank() == 1 {
            panic!("the reactor is on fire");
        }
        memory.open(0, 0).unwrap();
        let laid = memory.lay(0, 0, 100).and_then(Laying::finish);
        let waited = laid.and_then(|()| match comm.rank() {
            0 => memory.take(0, 0, 100).map(drop),
            _ => memory.look(0, 0, 100).map(drop),
        });
        told.lock().unwrap().send(waited.unwrap_err()).unwrap();
    });
    assert!(matches!(outcome, Err(LaunchError::Panicked { rank: 1, .. })));
    assert_eq!(seen.iter().collect::<Vec<_>>(), vec![CommError::RankPanicked { rank: 1 }; 2]);
}
