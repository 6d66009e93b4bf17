// postern list import: replaces a list's entries with those of a file.

import Accounts
import Administration
import ArgumentParser
import Database
import Decisions
import Foundation
import Support

extension ListCommand {
    struct Import: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Replace a list's entries with those of a file.",
            discussion: """
                The file has one entry per line, and # begins a comment; or it is CSV whose first line names the columns \
                value, expires and reason, or some of them. expires is a date, a time, a duration such as 90d, or never or \
                empty; expired entries are left out.

                Entries are written in small steps beside those in force, and then replace them all at once: no decision \
                sees only a part. If a line is refused, nothing is changed. A file without entries empties the list: that \
                needs --yes.
                """)

        @Argument(help: "The list's name.") var name: String
        @Argument(help: "The file; - for standard input.", completion: .file(), transform: filePath)
        var file: String
        @Flag(help: "Confirm that a file without entries empties the list.") var yes = false
        @OptionGroup var owner: Owner
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                let lists = store.liveLists
                let before = try lists.list(team: owner.team, name: name).entries
                var running = try lists.beginImport(team: owner.team, name: name)
                var batch: [LiveListEntry] = []
                func write() throws {
                    try lists.write(batch, &running, thisChange())
                    batch = []
                }
                let input =
                    file == "-" ? FileHandle.standardInput : FileHandle(forReadingAtPath: file)
                guard let input else { throw CommandError.noInput("\(file): cannot be read") }
                var status = stat()
                guard fstat(input.fileDescriptor, &status) == 0, status.st_mode & S_IFMT != S_IFDIR
                else {
                    throw CommandError.noInput("\(file): a folder")
                }
                do {
                    let name = file == "-" ? "standard input" : file
                    let ended = try ListFile.read(input, name: name, now: PosternClock.now()) {
                        entry in
                        try lists.check(entry, running)
                        batch.append(entry)
                        if batch.count == LiveListLimits.entriesOfChange { try write() }
                    }
                    try write()
                    if ended > 0 {
                        Failure.remark(
                            "\(name): \(Count.text(ended, "entry is", "entries are")) expired, and were left out"
                        )
                    }
                    guard running.count > 0 || before == 0 || yes else {
                        throw CommandError.data(
                            "\(file): no entry is in it: repeat with --yes to empty the list; nothing was changed"
                        )
                    }
                } catch {
                    try? lists.abandon(running)
                    throw error
                }
                try lists.finish(running, thisChange())
                while try lists.step(now: PosternClock.now()) {}
                print("List \(name) has \(Count.text(Int(running.count), "entry", "entries")) now.")
            }
        }
    }
}

/// Reads a file of entries in pieces: plain lines or CSV, depending on its first line.
struct ListFile {
    private enum Form { case unknown, lines, csv }

    private static let columnNames = ["value", "expires", "reason"]
    /// Names of columns that are in the first line of a table without a column `value`.
    private static let otherNames: Set = [
        "email", "e-mail", "mail", "address", "ip", "ip_address", "cidr", "range", "network",
        "domain", "host", "hostname",
        "phone", "name", "user", "comment", "note", "description", "expiry", "until", "date",
    ]

    private let name: String
    private let now: Int64
    private let take: (LiveListEntry) throws -> Void
    private var form = Form.unknown
    private var csv = CSVParser()
    /// The positions of the columns of `columnNames`; nil if the file does not name its columns.
    private var columns: [Int?]?
    private var columnCount = 0
    /// The number of expired entries, which are left out.
    private var ended = 0
    /// The incomplete line at the end of what was read.
    private var line: [UInt8] = []
    private var number = 0

    /// Reads to the end of the input. Throws `CommandError` with the line of a refused entry.
    /// - Parameter take: gets each entry; a `StoreFailure` that it throws is reported with the
    ///   entry's line.
    /// - Returns: the number of expired entries, which were left out.
    static func read(
        _ input: FileHandle, name: String, now: Int64,
        _ take: @escaping (LiveListEntry) throws -> Void
    ) throws -> Int {
        var file = ListFile(name: name, now: now, take: take)
        while let piece = try input.read(upToCount: 1 << 16), !piece.isEmpty {
            try file.push(piece)
        }
        if !file.line.isEmpty { try file.endLine() }
        if file.form == .csv { try file.withRecords { $0.finish($1) } }
        return file.ended
    }

    private init(name: String, now: Int64, take: @escaping (LiveListEntry) throws -> Void) {
        (self.name, self.now, self.take) = (name, now, take)
    }

    private mutating func push(_ piece: Data) throws {
        for (index, octet) in piece.enumerated() {
            if form == .csv {
                let rest = piece.dropFirst(index)
                return try withRecords { $0.push(rest, $1) }
            }
            line.append(octet)
            guard line.count <= CSVParser.maximumRecord else {
                throw refusal(number + 1, "the line is too long")
            }
            if octet == 0x0A { try endLine() }
        }
    }

    private mutating func endLine() throws {
        number += 1
        let octets = line
        line = []
        if number == 1, let fault = PlainText.fileFault(octets[...]) {
            throw refusal(1, fault.description)
        }
        if form == .unknown {
            let isBlank = octets.allSatisfy { [0x20, 0x09, 0x0D, 0x0A].contains($0) }
            guard !isBlank, octets.first != UInt8(ascii: "#") else { return }
            form = try form(of: octets)
            if form == .csv {
                // Empty lines before it, so that records have the numbers of their lines.
                let before = [UInt8](repeating: 0x0A, count: number - 1)
                return try withRecords { $0.push(before + octets, $1) }
            }
        }
        let text: String
        do {
            text = try PlainText.read(octets)
        } catch {
            throw refusal(number, error.wordsInLine)
        }
        if number == 1,
            let first = text.unicodeScalars.first(where: { !$0.properties.isWhitespace }),
            "<{[".unicodeScalars.contains(first)
        {
            throw refusal(
                1,
                "this is a web page or a program's response, not a list; write an entry that begins like this as CSV"
            )
        }
        let entry = text.unicodeScalars.prefix { $0 != "#" }.drop(while: \.properties.isWhitespace)
        guard let end = entry.lastIndex(where: { !$0.properties.isWhitespace }) else { return }
        try add(LiveListEntry(String(String.UnicodeScalarView(entry[...end]))), number)
    }

    /// The form of a file that begins with this line. Throws if the line names columns, but none of
    /// them is `value`.
    private func form(of line: [UInt8]) throws -> Form {
        var parser = CSVParser()
        var names: [String] = []
        func take(_ record: CSVRecord) { if record.defect == nil { names = record.columnNames } }
        parser.push(line, take)
        parser.finish(take)
        // The line may only define the separator; then the next line has the names.
        let isSeparator =
            line.starts(with: "sep=".utf8) || line.dropFirst(3).starts(with: "sep=".utf8)
        if isSeparator || names.contains("value") { return .csv }
        let areNames = names.contains {
            Self.otherNames.contains($0) || Self.columnNames.contains($0)
        }
        guard !areNames else {
            throw refusal(
                number,
                "the line names columns: name them value and, if needed, expires and reason. If it is an entry, write the file as CSV"
            )
        }
        // A line of single words between separators is a table header in another language. Plain
        // text may contain separators too.
        let areWords =
            names.count > 1
            && names.allSatisfy { name in
                !name.unicodeScalars.isEmpty
                    && name.unicodeScalars.allSatisfy {
                        $0.properties.isAlphabetic || " _-".unicodeScalars.contains($0)
                    }
            }
        guard !areWords else {
            throw refusal(
                number,
                "the line looks like the names of a table's columns: name them value and, if needed, expires and reason. If it is an "
                    + "entry, write the file as CSV with value in its first line")
        }
        return .lines
    }

    private mutating func withRecords(_ read: (inout CSVParser, (CSVRecord) -> Void) -> Void) throws
    {
        var records: [CSVRecord] = []
        read(&csv) { records.append($0) }
        for record in records { try add(record) }
    }

    private mutating func add(_ record: CSVRecord) throws {
        if let defect = record.defect { throw refusal(record.line, defect) }
        guard let columns else {
            let names = record.columnNames
            guard names.contains("value"), Set(names).count == names.count,
                names.allSatisfy(Self.columnNames.contains)
            else {
                throw refusal(
                    record.line,
                    "the line must name the columns value, expires and reason: value at least, each once, no others"
                )
            }
            columns = Self.columnNames.map { names.firstIndex(of: $0) }
            columnCount = names.count
            return
        }
        guard let fields = record.fields(columnCount) else {
            throw refusal(record.line, "the line must have as many fields as the first line")
        }
        func field(_ column: Int) -> String { columns[column].map { fields[$0] } ?? "" }
        let end: Int64?
        do {
            end = field(1).isEmpty ? nil : try ExpiryText.seconds(field(1), now: now)
        } catch {
            throw refusal(record.line, BatchLine.describe(error))
        }
        if let end, end <= now {
            ended += 1
            return
        }
        try add(LiveListEntry(field(0), reason: field(2), expiresAt: end), record.line)
    }

    private func add(_ entry: LiveListEntry, _ line: Int) throws {
        do {
            try take(entry)
        } catch let failure as StoreFailure {
            // If another import began, the fault is not in this line.
            guard failure.isRefusal, failure.code != .refused(.overtaken) else { throw failure }
            throw refusal(line, failure.message)
        }
    }

    private func refusal(_ line: Int, _ what: String) -> CommandError {
        CommandError.data("\(name):\(line): \(what)")
    }
}
