// main.cf and master.cf as files. Prepares them for postconf, compares its result with the plan,
// and can restore them octet for octet.

import Foundation

/// main.cf and master.cf of a configuration directory, octet for octet.
struct SetupFiles: Sendable, Hashable {
    static let names = ["main.cf", "master.cf"]

    /// By name.
    var contents: [String: Data]

    init(directory: String) throws {
        contents = [:]
        for name in Self.names {
            contents[name] = try Data(contentsOf: URL(filePath: "\(directory)/\(name)"))
        }
    }

    /// Ends the last line of a file if it has no line end: postconf would otherwise append to that
    /// line. The file keeps its identity, owner and mode.
    static func finishLine(of name: String, directory: String) throws {
        let content = try SetupFiles(directory: directory).contents[name]
        guard let last = content?.last, last != UInt8(ascii: "\n") else { return }
        let file = try FileHandle(forWritingTo: URL(filePath: "\(directory)/\(name)"))
        defer { try? file.close() }
        try file.seekToEnd()
        try file.write(contentsOf: [UInt8(ascii: "\n")])
    }

    /// The entries of main.cf that set none of these parameters, divided as postconf(1) does: each
    /// with its continuation lines.
    static func entries(_ main: Data, besides names: Set<String>) -> [Data] {
        var entries: [Data] = []
        for line in main.split(separator: UInt8(ascii: "\n")) {
            guard let first = line.first(where: { !isSpace($0) }), first != UInt8(ascii: "#") else {
                continue
            }
            if let start = line.first, isSpace(start), let last = entries.indices.last {
                entries[last] += [UInt8(ascii: "\n")] + line
            } else {
                entries.append(line)
            }
        }
        return entries.filter { entry in
            let name = String(decoding: entry.prefix { $0 != UInt8(ascii: "=") }, as: UTF8.self)
            return !names.contains(name.trimmingCharacters(in: .whitespacesAndNewlines))
        }
    }

    private static func isSpace(_ octet: UInt8) -> Bool {
        octet == 0x20 || (0x09...0x0D).contains(octet)
    }
}

/// The result of a plan for the two files: tried on copies before the files themselves are changed.
struct SetupTrial {
    let before: SetupFiles
    let after: SetupFiles

    /// Throws if postconf would do anything that differs from the plan.
    init(_ plan: SetupPlan) throws {
        before = try SetupFiles(directory: plan.directory)
        let folder = FileManager.default.temporaryDirectory.appending(
            path: "postern-setup-\(UUID().uuidString)"
        ).path
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: false,
            attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(atPath: folder) }
        for (name, content) in before.contents {
            try content.write(to: URL(filePath: "\(folder)/\(name)"))
        }
        try Self.age(folder)
        let old = try PostfixConfiguration.read(directory: folder)
        try PostfixSetup.change(plan, directory: folder)
        try Self.age(folder)
        after = try SetupFiles(directory: folder)
        let new = try PostfixConfiguration.read(directory: folder)
        if let wrong = differences(from: plan, old, new).first {
            throw PostfixToolError(
                description:
                    "postconf does not make \(wrong) what the plan says: nothing was changed")
        }
    }

    /// Postfix's programs wait until a file is two seconds old. These copies are complete, so their
    /// time is set back.
    private static func age(_ folder: String) throws {
        for name in SetupFiles.names {
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSinceNow: -60)],
                ofItemAtPath: "\(folder)/\(name)")
        }
    }

    /// The names of settings that differ from the plan.
    private func differences(
        from plan: SetupPlan, _ old: PostfixConfiguration, _ new: PostfixConfiguration
    ) -> [String] {
        func words(_ text: String?) -> [Substring]? { text?.split { $0.isWhitespace } }
        var wrong = plan.mainChanges.filter {
            words(new.values[$0.name]) != words($0.new) || !new.ownNames.contains($0.name)
        }
        .map(\.name)
        let changed = Set(plan.mainChanges.map(\.name))
        func others(_ files: SetupFiles) -> [Data] {
            SetupFiles.entries(files.contents["main.cf"] ?? Data(), besides: changed)
        }
        if others(before) != others(after) { wrong.append("another setting of main.cf") }
        // postconf rewrites the command of services that are new or have new parameters.
        let rewritten = Set(
            plan.masterChanges.map {
                $0.name.split(separator: "/").prefix(2).joined(separator: "/") + "/command"
            })
        let added = plan.newServices.map(\.name)
        func isAdded(_ name: String) -> Bool { added.contains { name.hasPrefix($0 + "/") } }
        let wanted = old.master.merging(plan.masterChanges.map { ($0.name, $0.new) }) { $1 }
        wrong += Set(wanted.keys).union(new.master.keys).filter {
            words(wanted[$0]) != words(new.master[$0]) && !(isAdded($0) && wanted[$0] == nil)
        }.sorted()
        wrong += Set(old.fields.keys).union(new.fields.keys).filter {
            !isAdded($0) && !rewritten.contains($0)
                && words(old.fields[$0]) != words(new.fields[$0])
        }.sorted()
        for service in plan.newServices {
            let command = words(service.new)?.dropFirst(7).first
            if words(new.fields[service.name + "/command"])?.first != command {
                wrong.append(service.name)
            }
        }
        return wrong
    }
}
