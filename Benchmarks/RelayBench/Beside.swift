// The duration of small replies while the worst messages are in work.

import Foundation
import HostileMail
import InternetMessage
import Synchronization

/// Seconds of the slowest of many replies of 4 kB, with the default memory. At the same time four
/// bombs of 19 MB are rewritten or wait for their rewriting. Nil if nothing could be measured.
func slowestBesideBombs() -> Double? {
    guard let world = RelayBenchFixture(replyMemory: 256_000_000),
        let bomb = Hostile.bombs.filter({ $0.name.contains("19000 kB") }).first
    else { return nil }
    let bombHeader = BenchCorpus.header(
        HeaderSection(bomb.header), author: RelayBenchFixture.inbox, recipient: world.reverse)
    let bombBody = bomb.body
    let left = Mutex(4)
    for _ in 0..<4 {
        Thread.detachNewThread {
            _ = world.play(
                from: RelayBenchFixture.inbox, to: world.reverse, header: bombHeader, body: bombBody
            )
            left.withLock { $0 -= 1 }
        }
    }
    let header = BenchCorpus.header(
        HeaderSection([HeaderField("Subject", "Hello")]), author: RelayBenchFixture.inbox,
        recipient: world.reverse)
    let body = Array(String(repeating: "Nothing special stands here.\r\n", count: 136).utf8)
    let clock = ContinuousClock()
    var slowest: Duration?
    while left.withLock({ $0 }) > 0 {
        let time = clock.measure {
            _ = world.play(
                from: RelayBenchFixture.inbox, to: world.reverse, header: header, body: body)
        }
        slowest = max(slowest ?? time, time)
    }
    return slowest.map { Double($0.components.seconds) + Double($0.components.attoseconds) / 1e18 }
}
