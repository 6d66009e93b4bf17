// The changes of `setup postfix`, recorded so that each value can be restored.

import Foundation

/// Kept in a file next to main.cf. If a setting was changed several times, the value before the
/// first change counts.
package struct SetupRecord: Codable, Sendable, Hashable {
    package struct Entry: Codable, Sendable, Hashable {
        /// The value as it was written before; nil if it was not set.
        package var before: String?
        /// The value as we wrote it.
        package var after: String

        /// A list without the items that we added to it; nil if it lacks one of them, or if none
        /// was added.
        func withoutOurs(_ now: String) -> String? {
            let before = PostfixList.items(before ?? "")
            let ours = PostfixList.items(after).filter { !before.contains($0) }
            let present = PostfixList.items(now)
            guard !ours.isEmpty, ours.allSatisfy(present.contains) else { return nil }
            return PostfixList.text(present.filter { !ours.contains($0) })
        }
    }

    /// Parameters of main.cf.
    package var main: [String: Entry] = [:]
    /// Parameters of services in master.cf, as `service/type/parameter`.
    package var master: [String: Entry] = [:]
    /// Services that we added to master.cf, as `name/type`, with their line.
    package var services: [String: String] = [:]

    /// main.cf and master.cf, by name. A record of an earlier version lacks them.
    private var files: [String: FileEntry]?

    /// A file before our first change and after our last one, octet for octet.
    private struct FileEntry: Codable, Sendable, Hashable {
        let before: Data
        let after: Data
    }

    package init() {}

    /// Adds the result of a plan for the files. If others changed a file since our last change, the
    /// complete file cannot be restored.
    mutating func add(_ trial: SetupTrial) {
        let isFirst = files == nil && main.isEmpty && master.isEmpty && services.isEmpty
        var files = files ?? [:]
        for (name, now) in trial.before.contents {
            let known = files[name]
            // If an earlier run was interrupted, the first change may not have been made.
            guard isFirst || known?.after == now || known?.before == now else {
                files[name] = nil
                continue
            }
            files[name] = FileEntry(
                before: known?.before ?? now, after: trial.after.contents[name] ?? now)
        }
        self.files = files
    }

    /// The files that are still as we left them, by name, with their earlier content.
    func restorable(_ now: SetupFiles) -> [String: Data] {
        (files ?? [:]).filter { now.contents[$0.key] == $0.value.after }.mapValues(\.before)
    }

    /// The sockets of Postern in our settings.
    var sockets: [String] {
        ["smtpd_milters", "non_smtpd_milters"].compactMap { main[$0] }.flatMap { entry in
            let before = PostfixList.items(entry.before ?? "")
            return PostfixList.items(entry.after).filter { !before.contains($0) }.map(
                PostfixList.milterSocket)
        }
    }

    /// The text of the file.
    func text() throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(self), as: UTF8.self) + "\n"
    }

    /// The file's name in Postfix's configuration directory.
    package static let fileName = "postern_settings.json"

    /// Adds the changes of a plan.
    package mutating func add(_ plan: SetupPlan, to configuration: PostfixConfiguration) {
        for change in plan.mainChanges {
            let present =
                configuration.ownNames.contains(change.name)
                ? configuration.values[change.name] : nil
            main[change.name] = Self.entry(main[change.name], present: present, after: change.new)
        }
        for change in plan.masterChanges {
            master[change.name] = Self.entry(
                master[change.name], present: configuration.master[change.name], after: change.new)
        }
        for service in plan.newServices { services[service.name] = service.new }
    }

    /// A value that the operator wrote since the last change counts as the value before this one,
    /// except for our own items in a list.
    private static func entry(_ known: Entry?, present: String?, after: String) -> Entry {
        guard let known else { return Entry(before: present, after: after) }
        if known.after == present { return Entry(before: known.before, after: after) }
        return Entry(before: present.map { known.withoutOurs($0) ?? $0 }, after: after)
    }
}

/// The changes of `setup postfix --remove`: a value, computed before any change.
package struct RemovalPlan: Sendable, Hashable {
    /// The configuration directory.
    package let directory: String
    /// Parameters of main.cf, and the values that some of them get back. The others were not set.
    private var mainNames: [String] = []
    private var mainValues: [String: String] = [:]
    /// The same for services in master.cf.
    private var masterNames: [String] = []
    private var masterValues: [String: String] = [:]
    /// Services that are removed.
    private var services: [String] = []
    /// Settings that others changed after us, so they stay: each with its value.
    package private(set) var kept: [String] = []
    /// The record of those settings.
    package private(set) var left = SetupRecord()
    /// Files that are octet for octet as we left them, by name. Each gets its complete earlier
    /// content back.
    var restored: [String: Data] = [:]

    package init(_ record: SetupRecord, for configuration: PostfixConfiguration) {
        directory = configuration.directory
        for (name, entry) in record.main.sorted(by: { $0.key < $1.key }) {
            let isSet = configuration.ownNames.contains(name)
            let now = isSet ? configuration.values[name] : nil
            if now == entry.before { continue }
            guard now == entry.after else {
                // If a list was changed since, our items are removed, and the rest stays.
                if let rest = entry.withoutOurs(now ?? "") {
                    mainNames.append(name)
                    if !rest.isEmpty { mainValues[name] = rest }
                } else {
                    kept.append("\(name) = \(now ?? "(not set)")")
                    left.main[name] = entry
                }
                continue
            }
            mainNames.append(name)
            if let before = entry.before { mainValues[name] = before }
        }
        // The parameters of a service are removed with it.
        for (name, line) in record.services.sorted(by: { $0.key < $1.key }) {
            guard let command = configuration.fields[name + "/command"] else { continue }
            let isOurs =
                Self.words(line).dropFirst(7).joined(separator: " ")
                == Self.words(command).prefix(1).joined()
            if isOurs {
                services.append(name)
            } else {
                kept.append("\(name) in master.cf: \(command)")
                left.services[name] = line
            }
        }
        for (name, entry) in record.master.sorted(by: { $0.key < $1.key }) {
            let service = name.split(separator: "/").prefix(2).joined(separator: "/")
            guard !services.contains(service) else { continue }
            let now = configuration.master[name]
            if now == entry.before || now == nil { continue }
            guard now == entry.after else {
                kept.append("\(name) = \(now ?? "")")
                left.master[name] = entry
                continue
            }
            masterNames.append(name)
            if let before = entry.before { masterValues[name] = before }
        }
    }

    private static func words(_ text: String) -> [Substring] { text.split(separator: " ") }

    /// Whether nothing must be restored.
    package var isEmpty: Bool { mainNames.isEmpty && masterNames.isEmpty && services.isEmpty }

    /// The plan as text for the operator, ending in a line feed.
    package var text: String { lines.joined(separator: "\n") + "\n" }

    package var lines: [String] {
        var lines: [String] = []
        if !mainNames.isEmpty { lines.append("# \(directory)/main.cf") }
        lines += mainNames.map { name in mainValues[name].map { "  \(name) = \($0)" } ?? "- \(name)"
        }
        if !masterNames.isEmpty || !services.isEmpty { lines.append("# \(directory)/master.cf") }
        lines += services.map { "- \($0)" }
        lines += masterNames.map { name in
            masterValues[name].map { "  \(name) = \($0)" } ?? "- \(name)"
        }
        if isEmpty { lines.append("Nothing in \(directory) is as postern setup postfix wrote it.") }
        return lines + kept.map { "note: \($0) was changed since, and stays" }
    }

    /// Restores the settings of the plan. Postfix must then be reloaded.
    /// - Parameter write: as in `PostfixSetup.apply`.
    func apply(write: (_ content: Data, _ path: String) throws -> Void) throws {
        for (name, content) in restored { try write(content, "\(directory)/\(name)") }
        if restored["main.cf"] == nil { try takeBackMain() }
        if restored["master.cf"] == nil { try takeBackMaster() }
    }

    private func takeBackMain() throws {
        guard !mainNames.isEmpty else { return }
        try SetupFiles.finishLine(of: "main.cf", directory: directory)
        let given = mainNames.compactMap { name in mainValues[name].map { "\(name) = \($0)" } }
        if !given.isEmpty { try PostfixTool.run("postconf", ["-c", directory, "-e"] + given) }
        let gone = mainNames.filter { mainValues[$0] == nil }
        if !gone.isEmpty { try PostfixTool.run("postconf", ["-c", directory, "-X"] + gone) }
    }

    private func takeBackMaster() throws {
        for service in services {
            try PostfixTool.run("postconf", ["-c", directory, "-MX", service])
        }
        let own = masterNames.compactMap { name in masterValues[name].map { "\(name)=\($0)" } }
        if !own.isEmpty { try PostfixTool.run("postconf", ["-c", directory, "-P"] + own) }
        let without = masterNames.filter { masterValues[$0] == nil }
        if !without.isEmpty { try PostfixTool.run("postconf", ["-c", directory, "-PX"] + without) }
    }
}
