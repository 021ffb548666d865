package io.coterie.signer.storage;

import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.claim.ExactNonces;
import io.coterie.signer.claim.OutsideCounter;
import io.coterie.signer.claim.ShownClaims;
import io.coterie.signer.group.GroupStore;
import io.coterie.signer.group.TicketStore;
import io.coterie.signer.order.Hold;
import io.coterie.signer.order.Holds;
import io.coterie.signer.share.KeyShare;
import io.coterie.signer.share.KeyShareStore;
import io.coterie.signer.share.KeyTrouble;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.sql.SQLException;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.function.ObjLongConsumer;
import java.util.function.Supplier;
import java.util.random.RandomGenerator;

/**
 * Everything a party keeps, in one SQLite file, by ledger. Thread-safe. Only one process can have
 * the file open.
 *
 * <p>A constraint of the database, not a check in this program, keeps it from doing twice anything
 * that must never happen twice. All ledgers write through the same {@link GroupCommit}, so one
 * transaction can hold a change, the end of what it replaces and its audit record.
 */
public final class PartyStore implements AutoCloseable {
  /** Name of the file in the data folder. */
  public static final String FILE = PartyFile.NAME;

  private final PartyFile file;
  private final ClaimLedger claims;
  private final KeyShareStore shares;
  private final ExactNonces exactNonces;
  private final ShownClaims shownClaims;
  private final SqliteAudit audit;
  private final PartySecrets secrets;
  private final AcceptedTrust trust;
  private final SqliteHolds holds;
  private final GroupStore groups;
  private final TicketStore tickets;
  private final Runnable operator;
  private final NotedCounter counter;

  private PartyStore(
      PartyFile file,
      SqliteAudit.Chain chain,
      Path folder,
      Clock clock,
      RandomGenerator random,
      Duration retention,
      long minFree,
      OutsideCounter outside) {
    SqliteLedger ledger = new SqliteLedger(random);
    this.counter = new NotedCounter(outside);
    SqliteExclusions exclusions =
        new SqliteExclusions(file, new UnwrittenExclusions(folder), ledger, chain, clock, counter);
    this.file = file;
    this.claims =
        new SqliteClaims(
            file, ledger, new SqliteRecords(file, retention), chain, clock, minFree, counter);
    this.exactNonces = new SqliteExactNonces(file);
    this.shownClaims = new SqliteShownClaims(file, exclusions);
    this.audit = new SqliteAudit(file, chain);
    this.secrets = new PartySecrets(file);
    this.trust = new AcceptedTrust(file, chain);
    this.holds = new SqliteHolds(file, chain, clock, exclusions::freezes);
    this.groups = new SqliteGroups(file, chain);
    this.tickets = new SqliteTickets(file, chain);
    OperatorRequests requests = new OperatorRequests(folder);
    SqliteShares sealed = new SqliteShares(file, exclusions, this::doAsAsked, chain, clock);
    OperatorActions actions = new OperatorActions(file, exclusions, holds, trust, sealed, chain);
    this.operator = () -> requests.perform(actions::perform);
    this.shares = sealed;
    exclusions.start();
  }

  /**
   * Opens the party's file, made and migrated if need be.
   *
   * @param folder made if it does not exist; readable by its owner alone
   * @param party roster name of the party
   * @param committed told the number of writes and the nanoseconds of each transaction
   * @throws StoreException if the file cannot be had, or another process has it
   */
  public static PartyStore open(
      Path folder, String party, Clock clock, ObjLongConsumer<Integer> committed) {
    return open(folder, party, clock, committed, SqliteRecords.RETENTION, 0);
  }

  /**
   * The same with another time for which records are kept, and room that claims leave.
   *
   * @param retention longer than requests are kept
   * @param minFree bytes of the disk that no claim takes
   */
  public static PartyStore open(
      Path folder,
      String party,
      Clock clock,
      ObjLongConsumer<Integer> committed,
      Duration retention,
      long minFree) {
    return open(folder, party, clock, committed, retention, minFree, OutsideCounter.NONE);
  }

  /**
   * The same with a counter outside the store.
   *
   * @param counter of this party
   * @throws StoreException also if the counter cannot be read
   */
  public static PartyStore open(
      Path folder,
      String party,
      Clock clock,
      ObjLongConsumer<Integer> committed,
      Duration retention,
      long minFree,
      OutsideCounter counter) {
    return open(
        folder,
        party,
        clock,
        committed,
        retention,
        minFree,
        () -> new CommitThread(party),
        new SecureRandom(),
        counter);
  }

  /**
   * The same with the means that the store otherwise makes itself.
   *
   * @param runner makes what runs the writes, once the file can be had
   * @param random marks each start of the ledger
   */
  public static PartyStore open(
      Path folder,
      String party,
      Clock clock,
      ObjLongConsumer<Integer> committed,
      Supplier<CommitRunner> runner,
      RandomGenerator random) {
    return open(
        folder,
        party,
        clock,
        committed,
        SqliteRecords.RETENTION,
        0,
        runner,
        random,
        OutsideCounter.NONE);
  }

  private static PartyStore open(
      Path folder,
      String party,
      Clock clock,
      ObjLongConsumer<Integer> committed,
      Duration retention,
      long minFree,
      Supplier<CommitRunner> runner,
      RandomGenerator random,
      OutsideCounter counter) {
    SqliteAudit.Chain chain = new SqliteAudit.Chain("signer/" + party, clock);
    PartyFile file =
        PartyFile.open(
            folder,
            runner,
            new GroupCommit.Listener() {
              @Override
              public void committed(int writes, long nanos) {
                committed.accept(writes, nanos);
              }

              @Override
              public void rolledBack() {
                chain.rolledBack();
              }
            });
    try {
      return new PartyStore(file, chain, folder, clock, random, retention, minFree, counter);
    } catch (RuntimeException e) {
      file.close();
      throw e;
    }
  }

  /** Makes the data folder, readable by its owner alone; leaves an existing one as it is. */
  public static void createFolder(Path folder) {
    PartyFile.createFolder(folder);
  }

  /** Sessions and requests that were claimed. */
  public ClaimLedger claims() {
    return claims;
  }

  /** Sealed shares, and the parties excluded from them. */
  public KeyShareStore shares() {
    return shares;
  }

  /** The groups of approvers. */
  public GroupStore groups() {
    return groups;
  }

  /** The tickets of groups, and their members. */
  public TicketStore tickets() {
    return tickets;
  }

  /** The nonce points of exact Ed25519. */
  public ExactNonces exactNonces() {
    return exactNonces;
  }

  /** How far the ledgers of others have come. */
  public ShownClaims shownClaims() {
    return shownClaims;
  }

  /** The audit trail. */
  public SqliteAudit audit() {
    return audit;
  }

  /** The party's own sealed secrets. */
  public PartySecrets secrets() {
    return secrets;
  }

  /** The highest version of the trust file that the party has accepted. */
  public AcceptedTrust trust() {
    return trust;
  }

  /** The holds that the operator has set, and the frozen keys. */
  public Holds holds() {
    return holds;
  }

  /** Does what the operator has asked for; {@link KeyShareStore#housekeep} does that too. */
  public void doAsAsked() {
    operator.run();
  }

  /** See {@link #holds}, of a folder whose party may be running in another process. */
  public static List<Hold> holds(Path folder) {
    return reading(
        folder,
        database ->
            SqliteHolds.all(
                SqliteHolds.read(database, Hold.Cause.OPERATOR),
                exclusions(folder, database).freezes()));
  }

  /**
   * See {@link KeyShareStore#troubles}, of a folder whose party may be running in another process.
   *
   * @throws StoreException if there is no party's file that can be read
   */
  public static List<KeyTrouble> troubles(Path folder) {
    return reading(folder, database -> exclusions(folder, database).troubles());
  }

  private static ExclusionMemory exclusions(Path folder, Database database) throws SQLException {
    ExclusionMemory memory = ExclusionMemory.read(database);
    memory.rememberAll(new UnwrittenExclusions(folder).read());
    return memory;
  }

  /**
   * The active shares, by key, in a folder whose party may be running in another process.
   *
   * @throws StoreException if there is no party's file that can be read
   */
  public static List<KeyShare> activeShares(Path folder) {
    return reading(folder, SqliteShares::active);
  }

  /**
   * Checks that a party holds something of a key that it is to forget. It may be running in another
   * process.
   *
   * @param named as {@link OperatorRequests.Kind#FORGET_KEY} takes it
   * @throws StoreException if it holds nothing of it; it tells which keys of the name it has
   */
  public static void requireShareOf(Path folder, String named) {
    KeyToForget key = KeyToForget.parse(named);
    key.requireAmong(reading(folder, key::held));
  }

  /**
   * Prints the audit records of a folder whose party may be running in another process, a line of
   * JSON each, with the intents that requesters have signed.
   *
   * @param from sequence number of the first one
   * @throws StoreException if there is no party's file that can be read, or its trail is broken
   */
  public static void export(Path folder, long from, PrintStream out) {
    reading(
        folder,
        database -> {
          SqliteRecords.export(database, from, out::println);
          return true;
        });
  }

  private static <T> T reading(Path folder, GroupCommit.Write<T> query) {
    Path file = folder.resolve(FILE);
    requireParty(folder);
    try (Database database = Database.reader(file)) {
      database.requireKnown();
      return query.run(database);
    } catch (SQLException e) {
      throw new StoreException(
          "%s cannot be read (%s): is it a party's, and are you its user?"
              .formatted(file, e.getMessage()),
          e);
    } catch (StoreException e) {
      throw e;
    } catch (RuntimeException e) {
      throw new StoreException(
          "%s is damaged (%s): keep it, and restore the party's backup"
              .formatted(file, e.getMessage()),
          e);
    }
  }

  /**
   * Checks that a folder is a party's.
   *
   * @throws StoreException saying what to give
   */
  public static void requireParty(Path folder) {
    if (!Files.isRegularFile(folder.resolve(FILE))) {
      throw new StoreException(
          folder.resolve(FILE)
              + " is missing: give the data folder of a party, /data/party in its pod");
    }
  }

  /** One line that says why the counter outside does not follow; empty if it does. */
  public Optional<String> counterProblem() {
    return counter.problem();
  }

  /** Writes what waits, then closes the file; the counter outside follows to the last claim. */
  @Override
  public void close() {
    file.close();
    claims.noteOutside();
  }
}
