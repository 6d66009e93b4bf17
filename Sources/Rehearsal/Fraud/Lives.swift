// Runs the steps of all actors in the world, in the order of time.

struct Lives {
    private let world: World
    private let population: Population
    private let start: Int64
    /// Actors who are not users yet, in the order in which they join, so that
    /// the clock never goes back.
    private var waiting: ArraySlice<Int>
    /// The installation's name of an actor; nil for actors who are not users now.
    private var names: [Int: String] = [:]
    private var joined = 0
    /// Attackers who did not pass a check: they no longer use their account.
    private var stopped: Set<Int> = []
    private var questions = 0

    private init(_ world: World, _ population: Population, start: Int64) {
        (self.world, self.population, self.start) = (world, population, start)
        waiting =
            population.actors.indices.filter { population.actors[$0].kind != .real(.imported) }
            .sorted { population.actors[$0].since < population.actors[$1].since }[...]
    }

    private mutating func name(_ actor: Int) throws -> String {
        if let name = names[actor] { return name }
        joined += 1
        let name = "u\(joined)"
        names[actor] = name
        try world.add(name, inbox: population.actors[actor].inbox)
        return name
    }

    /// Imports the people from another system.
    private mutating func bring() throws {
        let brought = population.actors.indices.filter {
            population.actors[$0].kind == .real(.imported)
        }
        var rows: [(user: String, inbox: String, since: Int64)] = []
        for (number, actor) in brought.enumerated() {
            names[actor] = "b\(number)"
            // Their consent is between a month and two years old.
            rows.append(
                (
                    "b\(number)", population.actors[actor].inbox,
                    start - Int64(30 + number * 37 % 700) * 86_400
                ))
        }
        world.set(start)
        try world.bring(rows)
    }

    /// The report, and the number of requests.
    /// - Parameter start: the beginning of the thirty days, in seconds since 1970.
    static func run(
        _ world: World, _ population: Population, start: Int64
    ) async throws -> (FraudReport, questions: Int) {
        var lives = Lives(world, population, start: start)
        return try await lives.run()
    }

    private mutating func run() async throws -> (FraudReport, questions: Int) {
        var report = FraudReport()
        var isBegun = false
        for step in population.steps {
            if step.at >= 0, !isBegun {
                isBegun = true
                try bring()
            }
            while let next = waiting.first, population.actors[next].since <= step.at {
                world.set(start + population.actors[next].since)
                _ = try name(next)
                waiting.removeFirst()
            }
            world.set(start + step.at)
            let name = try name(step.actor)
            guard step.what != .delete else {
                try world.remove(name)
                names[step.actor] = nil
                continue
            }
            let kind = population.actors[step.actor].kind
            guard !stopped.contains(step.actor) else {
                report.add(kind, step.what, .stopped)
                continue
            }
            let answer = try await ask(step, name, passes: kind.isReal || step.at < 0)
            // Earlier steps only build the history.
            guard step.at >= 0 else { continue }
            if !kind.isReal, !answer.challenges.isEmpty { stopped.insert(step.actor) }
            report.add(kind, step.what, answer.challenges.isEmpty ? .allowed : .asked(answer))
        }
        try world.flush()
        return (report, questions)
    }

    private mutating func ask(
        _ step: Step, _ name: String, passes: Bool
    ) async throws -> World.Answer {
        questions += 1
        if questions % 200 == 0 { try world.flush() }
        let event =
            switch step.what {
            case .signUp: "sign_up"
            case .signIn, .delete: "sign_in"
            case .sensitive: "sensitive_action"
            }
        let nonce = "n\(questions)"
        let token = try world.token(name, nonce: nonce)
        return try await world.ask(
            event, token: token, nonce: nonce, network: step.network, passes: passes)
    }
}
