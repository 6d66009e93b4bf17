// postern list import: replaces a list's entries with those of a file.

import Accounts
import ArgumentParser
import Decisions
import Foundation
import Administration

extension ListCommand {
    struct Import: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Replace a list's entries with those of a file.",
            discussion: """
                The file has one entry per line, and # begins a comment; or it is CSV whose first line is value, \
                value,expires or value,expires,reason. expires is a date, a time, a duration such as \
                90d, or never or empty.

                Entries are written in small steps beside those in force, and then replace them all at once: no decision \
                sees only a part. If a line is refused, nothing is changed.
                """)

        @Argument(help: "The list's name.") var name: String
        @Argument(help: "The file; - for standard input.", completion: .file()) var file: String
        @OptionGroup var owner: Owner
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                let lists = store.liveLists
                var running = try lists.beginImport(team: owner.team, name: name)
                var batch: [LiveListEntry] = []
                func write() throws {
                    try lists.write(batch, &running, thisChange())
                    batch = []
                }
                let input = file == "-" ? FileHandle.standardInput : FileHandle(forReadingAtPath: file)
                guard let input else { throw CommandError.noInput("\(file): cannot be read") }
                try ListFile.read(input, name: file, now: PosternClock.now()) { entry in
                    batch.append(entry)
                    if batch.count == LiveListLimits.entriesOfChange { try write() }
                }
                try write()
                try lists.finish(running, thisChange())
                while try lists.step(now: PosternClock.now()) {}
                print("List \(name) has \(Figures.count(Int(running.count))) entries now.")
            }
        }
    }
}

/// Reads a file of entries in pieces: plain lines or CSV, depending on its first line.
enum ListFile {
    static func read(_ input: FileHandle, name: String, now: Int64, _ take: (LiveListEntry) throws -> Void) throws {
        var parser = CSVParser()
        var columns: [String]?
        var isFirst = true
        func entry(_ record: CSVRecord) throws {
            if isFirst {
                isFirst = false
                let names = record.fields.map { $0.trimmingCharacters(in: .whitespaces).lowercased() }
                if [["value"], ["value", "expires"], ["value", "expires", "reason"]].contains(names) {
                    columns = names
                    return
                }
            }
            guard record.defect == nil else { throw CommandError.data("\(name):\(record.line): \(record.defect ?? "")") }
            guard columns != nil else {
                let line = record.fields.joined(separator: ",")
                let text = line.prefix { $0 != "#" }.trimmingCharacters(in: .whitespaces)
                if !text.isEmpty { try take(LiveListEntry(text)) }
                return
            }
            guard record.fields.count == columns?.count else {
                throw CommandError.data("\(name):\(record.line): the line must have as many fields as the first line")
            }
            let fields = record.fields + ["", ""]
            let end = fields[1].isEmpty ? nil : try ExpiryText.seconds(fields[1], now: now)
            try take(LiveListEntry(fields[0], reason: fields[2], expiresAt: end))
        }
        while let piece = try input.read(upToCount: 1 << 16), !piece.isEmpty { try parser.push(piece, entry) }
        try parser.finish(entry)
    }
}
