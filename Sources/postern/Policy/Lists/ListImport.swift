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
                The file has one entry per line, and # begins a comment; or it is CSV whose first line is value, \
                value,expires or value,expires,reason. expires is a date, a time, a duration such as \
                90d, or never or empty.

                Entries are written in small steps beside those in force, and then replace them all at once: no decision \
                sees only a part. If a line is refused, nothing is changed. A file without entries empties the list: that \
                needs --yes.
                """)

        @Argument(help: "The list's name.") var name: String
        @Argument(help: "The file; - for standard input.", completion: .file()) var file: String
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
                let input = file == "-" ? FileHandle.standardInput : FileHandle(forReadingAtPath: file)
                guard let input else { throw CommandError.noInput("\(file): cannot be read") }
                do {
                    try ListFile.read(input, name: file == "-" ? "standard input" : file, now: PosternClock.now()) { entry in
                        try lists.check(entry, running)
                        batch.append(entry)
                        if batch.count == LiveListLimits.entriesOfChange { try write() }
                    }
                    try write()
                    guard running.count > 0 || before == 0 || yes else {
                        throw CommandError.data(
                            "\(file): no entry is in it: repeat with --yes to empty the list; nothing was changed")
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

    private static let columnNames = [["value"], ["value", "expires"], ["value", "expires", "reason"]]

    private let name: String
    private let now: Int64
    private let take: (LiveListEntry) throws -> Void
    private var form = Form.unknown
    private var csv = CSVParser()
    private var columns: Int?
    /// The line that is not complete.
    private var line: [UInt8] = []
    private var number = 0

    /// Reads to the end of the input. Throws `CommandError` with the line of what is refused.
    /// - Parameter take: gets each entry; a `StoreFailure` that it throws is reported with the entry's line.
    static func read(_ input: FileHandle, name: String, now: Int64, _ take: @escaping (LiveListEntry) throws -> Void) throws {
        var file = ListFile(name: name, now: now, take: take)
        while let piece = try input.read(upToCount: 1 << 16), !piece.isEmpty { try file.push(piece) }
        if !file.line.isEmpty { try file.endLine() }
        if file.form == .csv { try file.withRecords { $0.finish($1) } }
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
            guard line.count <= CSVParser.maximumRecord else { throw refusal(number + 1, "the line is too long") }
            if octet == 0x0A { try endLine() }
        }
    }

    private mutating func endLine() throws {
        number += 1
        let octets = line
        line = []
        if number == 1, let fault = PlainText.fileFault(octets[...]) { throw refusal(1, fault.description) }
        if form == .unknown {
            form = Self.isHeader(octets) ? .csv : .lines
            if form == .csv { return try withRecords { $0.push(octets, $1) } }
        }
        let text: String
        do {
            text = try PlainText.read(octets)
        } catch {
            throw refusal(number, error.wordsInLine)
        }
        if number == 1, let first = text.unicodeScalars.first(where: { !$0.properties.isWhitespace }),
            "<{[".unicodeScalars.contains(first)
        {
            throw refusal(1, "this is a web page or a program's response, and not a list; an entry that begins so needs CSV")
        }
        let entry = text.unicodeScalars.prefix { $0 != "#" }.drop(while: \.properties.isWhitespace)
        guard let end = entry.lastIndex(where: { !$0.properties.isWhitespace }) else { return }
        try add(LiveListEntry(String(String.UnicodeScalarView(entry[...end]))), number)
    }

    /// Whether the line is the first of a CSV file.
    private static func isHeader(_ line: [UInt8]) -> Bool {
        var parser = CSVParser()
        var isHeader = false
        func take(_ record: CSVRecord) { isHeader = columnNames.contains(record.columnNames) }
        // A line that only says the separator is followed by the one with the names.
        let isSeparator = line.starts(with: "sep=".utf8) || line.dropFirst(3).starts(with: "sep=".utf8)
        parser.push(line, take)
        parser.finish(take)
        return isHeader || isSeparator
    }

    private mutating func withRecords(_ read: (inout CSVParser, (CSVRecord) -> Void) -> Void) throws {
        var records: [CSVRecord] = []
        read(&csv) { records.append($0) }
        for record in records { try add(record) }
    }

    private mutating func add(_ record: CSVRecord) throws {
        if let defect = record.defect { throw refusal(record.line, defect) }
        guard let columns else {
            let names = record.columnNames
            guard Self.columnNames.contains(names) else {
                throw refusal(record.line, "the line must name the columns: value, value,expires or value,expires,reason")
            }
            columns = names.count
            return
        }
        guard let fields = record.fields(columns).map({ $0 + ["", ""] }) else {
            throw refusal(record.line, "the line must have as many fields as the first line")
        }
        let end: Int64?
        do {
            end = fields[1].isEmpty ? nil : try ExpiryText.seconds(fields[1], now: now)
        } catch {
            throw refusal(record.line, BatchLine.describe(error))
        }
        try add(LiveListEntry(fields[0], reason: fields[2], expiresAt: end), record.line)
    }

    private func add(_ entry: LiveListEntry, _ line: Int) throws {
        do {
            try take(entry)
        } catch let failure as StoreFailure {
            guard failure.isRefusal else { throw failure }
            throw refusal(line, failure.message)
        }
    }

    private func refusal(_ line: Int, _ what: String) -> CommandError { CommandError.data("\(name):\(line): \(what)") }
}
