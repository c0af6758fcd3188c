package org.slf4j.impl;

import java.lang.reflect.Proxy;
import java.util.concurrent.ConcurrentHashMap;

import org.slf4j.ILoggerFactory;
import org.slf4j.Logger;
import org.slf4j.helpers.MessageFormatter;
import org.slf4j.spi.LoggerFactoryBinder;

/**
 * Makes a broker print its log to stdout, a line a message, where its jars have no logging of their own: put in front of
 * slf4j-nop. Messages of level debug are printed of LogManager only, and settings not at all.
 */
public final class StaticLoggerBinder implements LoggerFactoryBinder {
    public static final String REQUESTED_API_VERSION = "1.6.99";
    private static final StaticLoggerBinder SINGLETON = new StaticLoggerBinder();
    private final ConcurrentHashMap<String, Logger> loggers = new ConcurrentHashMap<>();

    public static StaticLoggerBinder getSingleton() {
        return SINGLETON;
    }

    @Override
    public ILoggerFactory getLoggerFactory() {
        return name -> loggers.computeIfAbsent(name, StaticLoggerBinder::logger);
    }

    @Override
    public String getLoggerFactoryClassStr() {
        return StaticLoggerBinder.class.getName();
    }

    private static Logger logger(String name) {
        boolean debug = name.endsWith(".LogManager");
        boolean info = !name.endsWith("Config");
        return (Logger) Proxy.newProxyInstance(Logger.class.getClassLoader(), new Class<?>[] {Logger.class}, (proxy, method, args) -> {
            switch (method.getName()) {
                case "getName": return name;
                case "toString": return name;
                case "hashCode": return System.identityHashCode(proxy);
                case "equals": return proxy == args[0];
                case "isTraceEnabled": return false;
                case "isDebugEnabled": return debug;
                case "isInfoEnabled": return info;
                case "isWarnEnabled": case "isErrorEnabled": return true;
                case "trace": return null;
                case "debug": if (!debug) return null; else break;
                case "info": if (!info) return null; else break;
            }
            print(args);
            return null;
        });
    }

    /** Prints a message whose parameters are one array, or stand side by side. */
    private static void print(Object[] args) {
        int first = args[0] instanceof String ? 0 : 1;
        Object[] parameters = new Object[args.length - first - 1];
        System.arraycopy(args, first + 1, parameters, 0, parameters.length);
        if (parameters.length == 1 && parameters[0] instanceof Object[] list) {
            parameters = list;
        }
        var message = MessageFormatter.arrayFormat((String) args[first], parameters);
        synchronized (System.out) {
            System.out.println(message.getMessage().replace('\n', ' '));
            if (message.getThrowable() != null) {
                message.getThrowable().printStackTrace(System.out);
            }
        }
    }
}
