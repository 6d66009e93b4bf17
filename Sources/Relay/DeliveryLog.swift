// Reads Postfix's log as it grows, and counts the results of forwards: each line once.

import Accounts
import Database
import Foundation
import Glibc
import MailCrypto
import PosternConfiguration
import RelayCore

/// One log, from the place up to which it was read before. The place is stored with the counts, in
/// one transaction. A log is recognised by its first line, so that it may be renamed, compressed
/// and read again.
package struct DeliveryLog: Sendable {
    /// What one reading found.
    package struct Summary: Sendable, Hashable {
        /// Lines that were not read before.
        package var lines = 0
        /// Results of forwards in them.
        package var results = 0

        package init() {}
    }

    /// Octets of a line that are read: Postfix cuts its lines at about 2,000.
    private static let lineLimit = 65_536
    private static let blockSize = 1 << 18
    /// Octets before the known place that are read again, because they name the senders of messages
    /// that are still in the queue. Postfix names them again with each attempt.
    private static let context: Int64 = 32 << 20
    /// Results that are written in one transaction.
    private static let batch = 500

    private let store: Store
    private var clock: LogClock
    private var reader: DeliveryLogReader

    /// - Parameters:
    ///   - keys: the keys in use; nil for those that the installation was opened with.
    ///   - now: seconds since 1970.
    /// - Returns: nil if the token keys cannot be used.
    package init?(
        _ installation: Installation, keys: KeyRing? = nil, now: @escaping @Sendable () -> Int64
    ) {
        guard let keys = TokenKeys((keys ?? installation.keys).token) else { return nil }
        store = installation.store
        clock = LogClock(now: now)
        let configuration = installation.configuration
        reader = DeliveryLogReader(
            tokens: TokenMint(keys: keys),
            relayDomains: configuration.relayDomains + configuration.formerRelayDomains)
    }

    /// Octets of the log that are not part of a whole line yet, and where they begin.
    private struct Place: Sendable {
        var mark: [UInt8]?
        var rest: [UInt8] = []
        /// Where `rest` begins, in octets.
        var start: Int64 = 0
        /// Octets that were counted before.
        var known: Int64 = 0
        /// What is not written yet, each with the place of the line's end.
        var pending: [(count: DeliveryCount, end: Int64)] = []
        var isSkipping = false
    }
    private var place = Place()

    /// Begins another log. Messages that are in the queue stay known.
    package mutating func begin() { place = Place() }

    /// Continues with other keys. Messages that are in the queue stay known.
    /// - Returns: false if they cannot be used; the former ones stay in use.
    package mutating func use(_ keys: KeyRing) -> Bool {
        guard let keys = TokenKeys(keys.token) else { return false }
        reader.use(TokenMint(keys: keys))
        return true
    }

    /// Reads a file from its beginning, or from the known place, to its end.
    package mutating func read(file: Int32) throws -> Summary {
        var summary = Summary()
        while try !read(file: file, blocks: .max, &summary) {}
        return summary
    }

    /// Reads some of a file, from its beginning or from the known place. After an error it can be
    /// called again.
    /// - Parameter blocks: how many are read at most, of 256 KiB each.
    /// - Returns: whether the end was reached.
    package mutating func read(
        file: Int32, blocks: Int, _ summary: inout Summary
    ) throws -> Bool {
        // The store may have been away: what is counted is written before more is read.
        try write(&summary)
        var status = stat()
        guard fstat(file, &status) == 0 else { throw DeliveryLogFailure(code: errno) }
        if place.mark != nil, Int64(status.st_size) < place.start + Int64(place.rest.count) {
            // Truncated, and written from its beginning again.
            begin()
        }
        if place.mark == nil {
            guard let mark = try Self.mark(file: file) else { return true }
            place = Place()
            place.known = try store.deliveries.octetsRead(log: mark)
            place.mark = mark
            // Begins in the middle of a line, which is then not a whole one. In a shorter copy of a
            // log that was read nothing is new.
            place.start = max(0, min(place.known, Int64(status.st_size)) - Self.context)
            place.isSkipping = place.start > 0
            lseek(file, off_t(place.start), SEEK_SET)
        }
        var left = blocks
        while left > 0 {
            let block = try Self.block(file)
            if block.isEmpty {
                try write(&summary)
                return true
            }
            try take(block, &summary)
            left -= 1
        }
        try write(&summary)
        return false
    }

    /// Whether a part of this file was counted before.
    package func isKnown(file: Int32) throws -> Bool {
        guard let mark = try Self.mark(file: file) else { return false }
        return try store.deliveries.octetsRead(log: mark) > 0
    }

    /// The mark of the file's first line; nil if there is no whole line yet.
    private static func mark(file: Int32) throws -> [UInt8]? {
        var first = [UInt8](repeating: 0, count: lineLimit)
        let count = pread(file, &first, first.count, 0)
        guard count >= 0 else { throw DeliveryLogFailure(code: errno) }
        guard let end = first[..<count].firstIndex(of: 0x0A) else {
            guard count < lineLimit else { throw DeliveryLogFailure.noLog }
            return nil
        }
        try check(first)
        return mark(first[..<end])
    }

    /// A compressed log has line breaks by chance, and no line of Postfix.
    private static func check(_ first: [UInt8]) throws {
        if CompressedFile.isCompressed(first) { throw DeliveryLogFailure.compressed }
    }

    private static func mark(_ line: ArraySlice<UInt8>) -> [UInt8] {
        SHA256.hash(Array("postern log of deliveries 1\n".utf8) + line)
    }

    /// Takes the next octets of a log that comes through a pipe.
    package mutating func take(_ block: [UInt8], _ summary: inout Summary) throws {
        var octets = place.rest + block
        if place.mark == nil {
            try Self.check(octets)
            guard let end = octets.firstIndex(of: 0x0A) else {
                guard octets.count < Self.lineLimit else { throw DeliveryLogFailure.noLog }
                place.rest = octets
                return
            }
            let mark = Self.mark(octets[..<end])
            place.known = try store.deliveries.octetsRead(log: mark)
            place.mark = mark
        }
        var start = octets.startIndex
        while let end = octets[start...].firstIndex(of: 0x0A) {
            let next = place.start + Int64(end + 1 - octets.startIndex)
            if !place.isSkipping, end - start <= Self.lineLimit {
                line(octets[start..<end], endingAt: next, &summary)
            }
            place.isSkipping = false
            start = end + 1
        }
        place.start += Int64(start - octets.startIndex)
        octets.removeFirst(start - octets.startIndex)
        if octets.count > Self.lineLimit {
            place.start += Int64(octets.count)
            octets = []
            place.isSkipping = true
        }
        place.rest = octets
        if place.pending.count >= Self.batch { try write(&summary) }
    }

    /// Writes what was counted since the last time.
    package mutating func write(_ summary: inout Summary) throws {
        guard let mark = place.mark else { return }
        while place.start > place.known {
            let counts = place.pending.map(\.count)
            if try store.deliveries.add(
                counts, log: mark, octets: place.known..<place.start, now: clock.now())
            {
                summary.results += counts.count
                place.known = place.start
            } else {
                // Another reader of this log was faster with some of the lines.
                place.known = try store.deliveries.octetsRead(log: mark)
            }
            place.pending.removeAll { [known = place.known] in $0.end <= known }
        }
    }

    /// Octets that the next `read` of a pipe may return at once; empty at the end.
    package static func block(_ file: Int32) throws -> [UInt8] {
        var block = [UInt8](repeating: 0, count: blockSize)
        while true {
            let count = Glibc.read(file, &block, block.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw DeliveryLogFailure(code: errno) }
            return Array(block[..<count])
        }
    }

    private mutating func line(
        _ line: ArraySlice<UInt8>, endingAt end: Int64, _ summary: inout Summary
    ) {
        let isKnown = end <= place.known
        let result = reader.read(line, isCounted: !isKnown)
        if !isKnown { summary.lines += 1 }
        guard let result else { return }
        let count = DeliveryCount(
            account: result.account.stored, hour: clock.seconds(of: line) / 3_600,
            provider: result.provider, outcome: result.outcome, count: 1)
        place.pending.append((count, end))
    }
}

/// The reason why a log cannot be read.
package struct DeliveryLogFailure: Error, CustomStringConvertible {
    package let description: String

    private init(_ description: String) { self.description = description }

    /// - Parameter code: of `errno`.
    package init(code: Int32) { description = String(cString: strerror(code)) }

    static let noLog = DeliveryLogFailure(
        "not a log: its first line has more than 65,536 octets")
    static let noFile = DeliveryLogFailure("not a file")
    static let compressed = DeliveryLogFailure(
        "compressed: give the output of zcat, xzcat or zstdcat to postern delivery read -")
}

/// The forms in which logs are packed away.
private enum CompressedFile {
    /// gzip, bzip2, xz, zstd (RFC 1952, RFC 8878).
    private static let marks: [[UInt8]] = [
        [0x1F, 0x8B], Array("BZh".utf8), [0xFD, 0x37, 0x7A, 0x58, 0x5A], [0x28, 0xB5, 0x2F, 0xFD],
    ]

    static func isCompressed(_ octets: [UInt8]) -> Bool {
        marks.contains { octets.starts(with: $0) }
    }
}

/// Turns the times of log lines into seconds since 1970.
private struct LogClock: Sendable {
    let now: @Sendable () -> Int64
    private var last: (time: DeliveryLogTime, seconds: Int64)?

    init(now: @escaping @Sendable () -> Int64) { self.now = now }

    /// The time of a line; the present time if it has none, or one in the future.
    mutating func seconds(of line: ArraySlice<UInt8>) -> Int64 {
        let now = now()
        guard let time = DeliveryLogTime(line) else { return now }
        if let last, last.time == time { return last.seconds }
        let seconds: Int64
        switch time {
        case .absolute(let value): seconds = value
        case .local(let month, let day, let hour):
            let calendar = Calendar(identifier: .gregorian)
            let year = calendar.component(.year, from: Date(timeIntervalSince1970: Double(now)))
            func at(_ year: Int) -> Int64? {
                calendar.date(
                    from: DateComponents(year: year, month: month, day: day, hour: hour)
                ).map { Int64($0.timeIntervalSince1970) }
            }
            // A line of December that is read in January is from the year before.
            let thisYear = at(year) ?? now
            seconds = thisYear > now + 86_400 ? at(year - 1) ?? now : thisYear
        }
        let bounded = min(max(0, seconds), now)
        last = (time, bounded)
        return bounded
    }
}
