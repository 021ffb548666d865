package io.coterie.acceptance.cluster;

import io.coterie.channel.SendMode;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** The plan of an installation. */
public final class ClusterPlan {
  final int parties;
  int threshold;
  Path folder = Path.of("target", "cluster");
  SendMode sendMode = SendMode.GROUP;
  Service.Home home = Service.Home.CONTEXT;
  Function<String, Site> sites = service -> Site.HERE;
  Consumer<String> progress = line -> {};
  String secondCoordinator = "";
  int coordinators = 1;
  int fewestParties = 2;
  Edge.@Nullable Plan edge;
  final List<String> strangers = new ArrayList<>();
  final Map<String, List<String>> more = new LinkedHashMap<>();
  final Map<String, Service.Launch> launches = new LinkedHashMap<>();

  ClusterPlan(int parties) {
    this.parties = parties;
    this.threshold = parties;
  }

  /** Parties needed to sign with keys made by {@link Cluster#createKey(String)}; n by default. */
  public ClusterPlan threshold(int threshold) {
    this.threshold = threshold;
    return this;
  }

  /** Where everything is kept; emptied at the start. */
  public ClusterPlan folder(Path folder) {
    this.folder = folder;
    return this;
  }

  public ClusterPlan sendMode(SendMode sendMode) {
    this.sendMode = sendMode;
    return this;
  }

  /** Each service as a process of its own; otherwise all are contexts of this JVM. */
  public ClusterPlan processes() {
    this.home = Service.Home.PROCESS;
    return this;
  }

  /** Starts one of the {@link #processes} by a command instead of this JVM's class path. */
  public ClusterPlan launch(String service, Service.Launch launch) {
    launches.put(service, launch);
    return this;
  }

  /**
   * Each service as a process of its own that stays when the service is stopped.
   *
   * @param sites where each service runs, and {@link Cluster#CLIENT} and its PostgreSQL
   */
  public ClusterPlan residents(Function<String, Site> sites) {
    this.home = Service.Home.RESIDENT;
    this.sites = sites;
    return this;
  }

  /** Further numbers that messaging lets enrol, whom no member pins. */
  public ClusterPlan alsoEnrol(String... names) {
    strangers.addAll(List.of(names));
    return this;
  }

  /** Sets the number of coordinators with one database; the second is {@code coordinator-1}. */
  public ClusterPlan coordinators(int count) {
    coordinators = count;
    return this;
  }

  /** Signers also make keys that one party holds, or that one party can sign with. */
  public ClusterPlan keysOfOneParty() {
    fewestParties = 1;
    return this;
  }

  /** A second coordinator that every member pins, and that is not one of the services. */
  public ClusterPlan secondCoordinator(String name) {
    alsoEnrol(name);
    secondCoordinator = name;
    return this;
  }

  /**
   * Envoy in front of it: wallet backends and signers call it instead of the services.
   *
   * @param projectRoot where the Makefile is
   */
  public ClusterPlan edge(Path projectRoot) {
    return edge(new Edge.Plan(projectRoot));
  }

  /** Envoy in front of it, with limits of its own. */
  public ClusterPlan edge(Edge.Plan edge) {
    this.edge = edge;
    return setting(Settings.COORDINATOR, "--coterie.coordinator.edges[0]=dns:" + Edge.NAME);
  }

  /** Receives a line for each thing done. */
  public ClusterPlan progress(Consumer<String> progress) {
    this.progress = progress;
    return this;
  }

  /** A further Spring setting of one service, {@code --key=value}. */
  public ClusterPlan setting(String service, String argument) {
    more.computeIfAbsent(service, s -> new ArrayList<>()).add(argument);
    return this;
  }

  /** Starts everything and waits until it is ready. */
  public Cluster start() {
    Cluster cluster = new Cluster(this);
    try {
      cluster.startServices();
      return cluster;
    } catch (RuntimeException | Error e) {
      cluster.close();
      throw e;
    }
  }
}
