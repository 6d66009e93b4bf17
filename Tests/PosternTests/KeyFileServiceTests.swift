// A changed key file under a running service, and a mail engine that cannot use it at once.

import Accounts
import Database
import Foundation
import HTTP
import Logging
import PosternConfiguration
import Synchronization
import TestSupport
import Testing

@testable import Service

@Suite(.blocking) struct KeyFileServiceTests {
    private struct NoDescriptors: Error {}

    /// If the switch fails, mail must not keep the old keys until the next SIGHUP while the store
    /// has the new ones.
    @Test func keyFileService_changeFails_triesAgain() async throws {
        let runner = try CommandRunner.initialised()
        let installation = try Installation.open(
            flag: runner.configuration, environment: [:], now: 1_790_000_000)
        defer { try? installation.close() }
        let pool = BlockingPool(.requests, threads: 1)
        let before = installation.keys
        let attempts = Mutex(0)
        let service = KeyFileService(
            installation: installation, pool: pool, now: { 1_790_000_000 },
            logger: Logger(label: "test"),
            inUse: ValueHolder(before),
            changed: {
                let attempt = attempts.withLock { count -> Int in
                    count += 1
                    return count
                }
                if attempt == 1 { throw NoDescriptors() }
            })
        let next = try #require(before.adding(.token, secret: [UInt8](repeating: 7, count: 32)))
        try KeyFile.replace(path: installation.configuration.keyFilePath, text: next.fileText)
        var refused: KeyRing?
        await #expect(throws: NoDescriptors.self) { try await service.refresh(&refused) }
        #expect(service.inUse.current == before, "mail is decided with the old ones")
        try await service.refresh(&refused)
        #expect(service.inUse.current == next && installation.keys == next)
        try await service.refresh(&refused)
        #expect(attempts.withLock { $0 } == 2, "and then left alone")
        await pool.stop()
    }
}
