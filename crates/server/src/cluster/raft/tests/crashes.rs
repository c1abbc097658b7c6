//! A node that dies at any operation of its disk while it joins a cluster.

use super::*;

#[tokio::test]
async fn a_node_that_dies_anywhere_while_it_joins_ends_in_one_cluster() {
    let host = start().await;
    let mut size = 1;
    let mut is_over = false;
    for at in 1.. {
        if is_over {
            assert!(at > 5, "a join has more steps on the disk");
            break;
        }
        let joiner = start().await;
        let id = joiner.id();
        joiner.disk.set_fault(Fault::From(at));
        let met = timeout(DEADLINE, joiner.log.meet(host.peer())).await.unwrap();
        // Raft's own writes go on for as long as the node lives; the join itself is over.
        is_over = met.is_ok();
        let joiner = start_with(joiner.stop().await, "").await;
        assert_eq!(joiner.id(), id);
        // Whatever the host knows of it, it finds out, and another meeting brings it in.
        let met = timeout(DEADLINE, joiner.log.meet(host.peer())).await.unwrap();
        if met.is_err() {
            assert!(host.now().node(id).is_some(), "{met:?}");
        }
        size += 1;
        joiner.sees("the cluster", |metadata| metadata.nodes().len() == size).await;
        host.sees("the joiner", |metadata| metadata.nodes().len() == size).await;
        let logs = joiner
            .disk
            .paths()
            .iter()
            .filter(|path| path.extension().is_some_and(|end| end == "log"))
            .count();
        assert_eq!(logs, 1, "what belongs to no group of this node is removed");
        timeout(DEADLINE, joiner.log.reset(id)).await.unwrap().unwrap();
        size -= 1;
        host.sees("that it is gone", |metadata| metadata.nodes().len() == size).await;
        joiner.stop().await;
    }
}
