// The parts of a running Postfix's configuration on which the relay depends, read with postconf.

import Foundation

/// The failure of a Postfix tool.
package struct PostfixToolError: Error, CustomStringConvertible {
    package let description: String
}

/// Values of a Postfix configuration directory.
package struct PostfixConfiguration: Sendable, Hashable {
    /// The configuration directory, absolute.
    package var directory: String
    /// Parameters as written, or their defaults as written.
    package var values: [String: String]
    /// The same with every `$name` and `${…}` expanded.
    package var expanded: [String: String]
    /// `-o` settings of master.cf, by `service/type/parameter`.
    package var master: [String: String]
    /// Fields of master.cf, by `service/type/field`: `smtp/inet/chroot`, `smtp/inet/command`.
    package var fields: [String: String]
    /// Parameters that main.cf sets.
    package var ownNames: Set<String> = []
    /// The answers of this machine's tables, by table and key: see `lookUp`.
    package var answers: [TableQuestion: String] = [:]
    /// The transport of a relay domain in transport_maps, by domain. A domain without an entry is
    /// absent.
    package var routes: [String: String] = [:]

    package init(
        directory: String, values: [String: String], expanded: [String: String]? = nil,
        master: [String: String] = [:],
        fields: [String: String] = [:]
    ) {
        self.directory = directory
        self.values = values
        self.expanded = expanded ?? values
        self.master = master
        self.fields = fields
    }

    /// Reads a configuration directory with `postconf`.
    package static func read(directory: String) throws -> PostfixConfiguration {
        let names = Self.names
        // The operator's settings, including custom names to which lists may refer, and the
        // defaults of the parameters that the plan uses.
        let set = try settings(PostfixTool.run("postconf", ["-c", directory, "-n"]))
        let values = try settings(PostfixTool.run("postconf", ["-c", directory] + names)).merging(
            set
        ) { value, _ in value }
        let expanded = try settings(PostfixTool.run("postconf", ["-c", directory, "-x"] + names))
        let master = try settings(PostfixTool.run("postconf", ["-c", directory, "-P"]))
        let fields = try settings(PostfixTool.run("postconf", ["-c", directory, "-F"]))
        var configuration = PostfixConfiguration(
            directory: directory, values: values, expanded: expanded, master: master, fields: fields
        )
        configuration.ownNames = Set(set.keys)
        return configuration
    }

    /// The smtpd services that accept mail from other servers, as `name/type`. Excludes those for
    /// the operator's own users (submission), and those with no filter or only other filters.
    /// - Parameters:
    ///   - fanOut: HOST:PORT of the service for copies, which is not included.
    ///   - socket: Postern's socket. A service with its own milters is included if this is among
    ///     them.
    package func incomingServices(besides fanOut: String?, socket: String) -> [String] {
        fields.compactMap { name, command -> String? in
            guard name.hasSuffix("/command"), command.split(separator: " ").first == "smtpd" else {
                return nil
            }
            let service = String(name.dropLast("/command".count))
            guard service.hasSuffix("/inet") || service.hasSuffix("/pass"),
                service != fanOut.map({ "\($0)/inet" })
            else {
                return nil
            }
            let port = service.dropLast("/inet".count).split(separator: ":").last ?? ""
            let isForUsers =
                Self.submissionPorts.contains(String(port))
                || master["\(service)/smtpd_sasl_auth_enable"] == "yes"
            let own = master["\(service)/smtpd_milters"].map { PostfixList.items($0) }
            let isApart =
                own.map { items in
                    !items.contains { PostfixList.milterSocket($0) == socket || $0.hasPrefix("$") }
                } ?? false
                || PostfixList.items(master["\(service)/receive_override_options"] ?? "").contains(
                    "no_milters")
            return isForUsers || isApart ? nil : service
        }.sorted()
    }

    /// Looks up the relay domains in the tables that rewrite recipients or let them through.
    mutating func lookUp(_ domains: [String]) {
        func ask(_ table: String, _ key: String) {
            let question = TableQuestion(table: table, key: key)
            guard answers[question] == nil, question.isLocal else { return }
            answers[question] = PostfixTool.answer(question, directory: directory)
        }
        func ask(_ parameter: String, _ keys: [String]) {
            for table in PostfixList.items(expanded[parameter] ?? "") {
                for key in keys { ask(table, key) }
            }
        }
        for parameter in Self.rewriting { ask(parameter, domains.map { "@\($0)" }) }
        for domain in domains {
            if let route = try? DeadEndTransport.lookUp("postern-doctor@\(domain)", in: self) {
                routes[domain] = route
            }
        }
        // A domain alone in virtual_alias_maps is a virtual alias domain.
        for parameter in Self.taking + ["virtual_alias_maps"] { ask(parameter, domains) }
        let lists =
            values.filter { $0.key.hasSuffix("_restrictions") || ownNames.contains($0.key) }.map(
                \.value) + Array(master.values)
        for list in lists {
            let items = PostfixList.items(list)
            for (item, table) in zip(items, items.dropFirst())
            where item.lowercased() == "check_recipient_access" {
                for domain in domains { for key in Self.withParents(domain) { ask(table, key) } }
            }
        }
    }

    /// Lists of domains for which mail does not use the way of virtual mailbox domains.
    static let taking = ["mydestination", "virtual_alias_domains"]

    /// The keys for which Postfix looks up a domain in an access table, in order.
    static func withParents(_ domain: String) -> [String] {
        let labels = domain.split(separator: ".")
        return labels.indices.map { labels[$0...].joined(separator: ".") }
    }

    /// Tables that replace a recipient before a milter sees the message.
    static let rewriting = ["virtual_alias_maps", "canonical_maps", "recipient_canonical_maps"]

    /// The milters that a parameter names, each by its socket.
    package func milters(of parameter: String) -> [String] {
        PostfixList.items(expanded[parameter] ?? "").map(PostfixList.milterSocket)
    }

    /// RFC 6409 and RFC 8314, by name and number.
    private static let submissionPorts: Set = ["submission", "submissions", "smtps", "465", "587"]

    /// The parameters that the plan and doctor use.
    static var names: [String] {
        let inputs = PostfixInputs(relayDomains: [], socket: "", hostName: "")
        return PostfixSettings.main(inputs).map(\.name) + PostfixSettings.errorLimitNames
            + Restrictions.lists + [
                "smtpd_restriction_classes",
                "transport_maps", "mydestination", "relay_domains", "virtual_alias_domains",
                "myhostname", "mail_name",
                "smtpd_milter_maps", "smtpd_discard_ehlo_keyword_address_maps",
                "receive_override_options",
                "smtpd_recipient_limit", "smtpd_tls_cert_file", "smtpd_tls_chain_files",
                "smtpd_tls_eccert_file",
                "mailbox_size_limit", "virtual_mailbox_limit", "queue_directory", "relayhost",
                "mail_owner", "inet_interfaces",
                "inet_protocols", "content_filter", "masquerade_domains",
            ] + rewriting
    }

    /// `name = value` lines.
    private static func settings(_ text: String) -> [String: String] {
        var result = [String: String]()
        for line in text.split(separator: "\n") {
            guard let equals = line.firstIndex(of: "=") else { continue }
            let name = line[..<equals].trimmingCharacters(in: .whitespaces)
            result[name] = line[line.index(after: equals)...].trimmingCharacters(in: .whitespaces)
        }
        return result
    }
}

/// A look-up in a table.
package struct TableQuestion: Sendable, Hashable {
    /// `TYPE:NAME`.
    package let table: String
    package let key: String

    package init(table: String, key: String) { (self.table, self.key) = (table, key) }

    /// Types that are read from files of this machine, or from the setting itself.
    private static let localTypes: Set = [
        "static", "inline", "hash", "btree", "lmdb", "cdb", "dbm", "sdbm", "texthash", "regexp",
        "pcre", "cidr", "pipemap",
        "unionmap",
        "randmap",
    ]

    /// Without `proxy:`, which only determines the program that opens the table.
    var local: String {
        table.hasPrefix("proxy:") ? String(table.dropFirst("proxy:".count)) : table
    }
    var type: String { String(local.prefix { $0 != ":" }) }
    var isFile: Bool { table.hasPrefix("/") }
    var isLocal: Bool { isFile || Self.localTypes.contains(type) }
}

/// Runs the tools of Postfix.
enum PostfixTool {
    /// The value for a key in a table; nil if there is none, or if the table cannot be read.
    static func answer(_ question: TableQuestion, directory: String) -> String? {
        if question.isFile {
            // A file with one domain on each line.
            let text = (try? String(contentsOfFile: question.table, encoding: .utf8)) ?? ""
            let words = text.split { $0.isNewline }.filter { !$0.hasPrefix("#") }.flatMap {
                PostfixList.items(String($0))
            }
            return words.contains { $0.lowercased() == question.key } ? question.key : nil
        }
        let answer = try? run("postmap", ["-c", directory, "-q", question.key, question.local])
        let text = answer?.trimmingCharacters(in: .whitespacesAndNewlines) ?? ""
        return text.isEmpty ? nil : text
    }

    /// The folders of these tools in Debian and most other systems; used after the PATH.
    private static let places = ["/usr/sbin", "/usr/local/sbin", "/sbin"]

    /// Runs a tool to its end and returns its standard output. Throws with its standard error if it
    /// fails.
    @discardableResult
    static func run(_ tool: String, _ arguments: [String]) throws -> String {
        String(decoding: try octets(tool, arguments), as: UTF8.self)
    }

    /// The same, with the unchanged output.
    static func octets(_ tool: String, _ arguments: [String]) throws -> [UInt8] {
        let path =
            (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map(
                String.init) + places
        guard let executable = ToolRun.find(tool, in: path) else {
            throw PostfixToolError(description: "\(tool) was not found; is Postfix installed?")
        }
        let run = try ToolRun(executable, arguments)
        guard run.status == 0 else {
            throw PostfixToolError(
                description:
                    "\(tool) failed: \(run.errors.trimmingCharacters(in: .whitespacesAndNewlines))")
        }
        return run.octets
    }
}
