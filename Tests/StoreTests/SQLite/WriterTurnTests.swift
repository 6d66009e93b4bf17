// The callers that wait for the one writing connection.

import Database
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import PosternSQLite

@Suite(.blocking) struct WriterTurnTests {
    /// A writer that writes until it is stopped, and the callers that wait for it.
    private final class Line: Sendable {
        let turn: WriterTurn
        private let served = Mutex<[String]>([])
        private let refused = Mutex<[StoreFailure.Code]>([])
        private let release = DispatchSemaphore(value: 0)
        private let group = DispatchGroup()

        init(burst: Duration) {
            turn = WriterTurn(burst: burst)
            let begun = DispatchSemaphore(value: 0)
            start("first", isRequest: false) {
                begun.signal()
                self.release.wait()
            }
            begun.wait()
        }

        private func start(_ name: String, isRequest: Bool, _ body: @escaping @Sendable () -> Void)
        {
            group.enter()
            Thread.detachNewThread { [self] in
                WriteQueue.$isOnSharedThread.withValue(isRequest) {
                    do throws(StoreFailure) {
                        try turn.run(by: .now + .seconds(60)) {
                            body()
                            served.withLock { $0.append(name) }
                        }
                    } catch {
                        refused.withLock { $0.append(error.code) }
                    }
                }
                group.leave()
            }
        }

        /// Returns when the caller waits, or was refused.
        func add(_ name: String, isRequest: Bool) {
            let before = settled
            start(name, isRequest: isRequest) {}
            while settled == before { Thread.sleep(forTimeInterval: 0.001) }
        }

        private var settled: Int { turn.waiting + refusals.count }
        var refusals: [StoreFailure.Code] { refused.withLock { $0 } }
        var names: [String] { served.withLock { $0 } }

        func end() {
            release.signal()
            group.wait()
        }
    }

    /// With 32 requests ahead and 16 ms for a commit, every decision would give up, and mail would
    /// be deferred.
    @Test func writerTurn_mailAndDecisions_comeBeforeRequests() {
        let line = Line(burst: .seconds(60))
        for (name, isRequest) in [
            ("request 1", true), ("decision", false), ("request 2", true), ("mail", false),
        ] {
            line.add(name, isRequest: isRequest)
        }
        line.end()
        #expect(line.names == ["first", "decision", "mail", "request 1", "request 2"])
    }

    /// Callers beyond 32 must not be refused at once if the changes are quick.
    @Test func writerTurn_burstOfChanges_isServed() {
        let line = Line(burst: .seconds(60))
        for number in 0..<2 * WriteQueue.sharedThreads {
            line.add("request \(number)", isRequest: true)
        }
        line.end()
        #expect(line.names.count == 1 + 2 * WriteQueue.sharedThreads)
        #expect(line.refusals.isEmpty)
    }

    @Test func writerTurn_noProgress_refusesExcessRequests() {
        let line = Line(burst: .zero)
        for number in 0..<WriteQueue.sharedThreads + 3 {
            line.add("request \(number)", isRequest: true)
        }
        #expect(line.refusals == Array(repeating: .temporary(.busy), count: 3))
        line.end()
        #expect(line.names.count == 1 + WriteQueue.sharedThreads)
    }
}
